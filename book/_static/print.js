// What is printed is light, whatever the screen shows, and nothing is folded but the code of figures.
"use strict";

(() => {
  const page = document.documentElement;
  let theme = null;
  let opened = [];

  addEventListener("beforeprint", () => {
    theme = page.dataset.theme;
    if (theme) page.dataset.theme = "light";
    opened = [...document.querySelectorAll("details:not([open]):not(.hide)")];
    for (const fold of opened) fold.open = true;
  });
  addEventListener("afterprint", () => {
    if (theme) page.dataset.theme = theme;
    for (const fold of opened) fold.open = false;
  });
})();
