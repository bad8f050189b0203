/* Repairs of theme markup that axe-core reports; nothing of the book's own content. */
document.addEventListener("DOMContentLoaded", function () {
  // The visible text of the search button is already its name.
  for (const button of document.querySelectorAll("button.search-button-field[aria-label]")) {
    button.removeAttribute("aria-label");
  }
  // doc-biblioentry is deprecated and not allowed inside role="list".
  for (const entry of document.querySelectorAll('[role="doc-biblioentry"]')) {
    entry.setAttribute("role", "listitem");
  }
});
