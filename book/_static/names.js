/* In tables of names from code, a long name may break after _ . and =, so that the table fits. */
document.addEventListener("DOMContentLoaded", function () {
  for (const name of document.querySelectorAll("table.names code .pre")) {
    const parts = name.textContent.split(/(?<=[_.=])/);
    name.replaceChildren(...parts.flatMap((part) => [part, document.createElement("wbr")]));
  }
});
