// Mark the cells that run on the ranks with the colours of the ranks that answered. Without this file the pages lose
// only that mark.
document.addEventListener("DOMContentLoaded", () => {
  for (const code of document.querySelectorAll("div.highlight pre")) {
    if (!code.textContent.trimStart().startsWith("%%px")) continue;
    const cell = code.closest(".cell");
    const chips = cell ? cell.querySelectorAll(".rl-panel .rl-rank") : [];
    const colors = new Map([...chips].map((chip) => [Number(chip.textContent), chip.style.backgroundColor]));
    const ranks = [...colors.keys()].filter(Number.isInteger).sort((a, b) => a - b);
    const stops = ranks.map((rank, i) =>
      `${colors.get(rank)} ${(100 * i) / ranks.length}% ${(100 * (i + 1)) / ranks.length}%`);
    code.parentElement.classList.add("rl-on-ranks");
    if (stops.length) code.parentElement.style.setProperty("--rl-cell", `linear-gradient(${stops.join(",")})`);
  }
});
