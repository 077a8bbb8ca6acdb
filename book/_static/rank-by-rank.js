// Mark the cells that run on the ranks, so that the style sheet can show it. Without this file the pages lose only that mark.
document.addEventListener("DOMContentLoaded", () => {
  for (const code of document.querySelectorAll("div.highlight pre")) {
    if (code.textContent.trimStart().startsWith("%%px")) code.parentElement.classList.add("rl-on-ranks");
  }
});
