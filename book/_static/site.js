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
