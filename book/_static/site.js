// A figure at its full size: a tap opens it over the page, where it scrolls. Without this file the link shows the picture.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a.rl-full");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  const shown = link.querySelector("img");
  const dialog = document.createElement("dialog");
  dialog.className = "rl-figure";
  dialog.setAttribute("aria-label", "Figure at full size");
  const close = Object.assign(document.createElement("button"), { type: "button", textContent: "Close" });
  const picture = Object.assign(document.createElement("img"), { src: link.href, alt: shown.alt });
  picture.style.width = `${Math.max(Number(shown.getAttribute("width")), Math.round(window.innerWidth * 0.9))}px`;
  const sheet = Object.assign(document.createElement("div"), { className: "rl-figure-sheet", tabIndex: 0 });
  sheet.setAttribute("role", "group");
  sheet.setAttribute("aria-label", "Figure, which scrolls");
  sheet.append(picture);
  dialog.append(close, sheet);
  document.body.append(dialog);
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (click) => { if (click.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => { dialog.remove(); link.focus(); });
  dialog.showModal();
});

// On paper everything is open, and afterwards as it was.
(() => {
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("article details:not([open])")];
    for (const fold of opened) fold.open = true;
    for (const picture of document.querySelectorAll("article img[loading=lazy]")) picture.loading = "eager";
  });
  window.addEventListener("afterprint", () => { for (const fold of opened) fold.open = false; });
})();

// The menu below a button, of downloads and of places that open the chapter: Escape and a click elsewhere close it.
(() => {
  const buttons = () => document.querySelectorAll("button.dropdown-toggle");
  const opened = (button) => button.getAttribute("aria-expanded") === "true";
  const set = (button, open) => {
    button.setAttribute("aria-expanded", String(open));
    button.parentElement.querySelector(".dropdown-menu").classList.toggle("show", open);
  };
  document.addEventListener("click", (event) => {
    for (const button of buttons()) set(button, button.contains(event.target) && !opened(button));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const button of buttons()) {
      if (!opened(button)) continue;
      set(button, false);
      button.focus();
    }
  });
})();

// A box that scrolls is reached by keyboard. The browser tells sizes once it has laid a box out, and not before it has
// to: to ask for them would lay out the whole page.
document.addEventListener("DOMContentLoaded", () => {
  const sizes = new ResizeObserver((told) => {
    const scrolls = told.map(({ target }) => target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight);
    told.forEach(({ target }, nth) => (scrolls[nth] ? (target.tabIndex = 0) : target.removeAttribute("tabindex")));
  });
  for (const box of document.querySelectorAll("#main-content :is(pre, .cell_output > .output, .pst-scrollable-table-container)")) sizes.observe(box);
});
