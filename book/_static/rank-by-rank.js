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

// On the index of errors, and on the page of variables: a field that finds the entry of a line from a terminal, whatever
// numbers and paths it has.
// Without this file the page is the whole list.
document.addEventListener("DOMContentLoaded", () => {
  const place = document.querySelector("p.rl-find");
  if (!place) return;
  const variables = place.classList.contains("rl-variables");
  const noun = variables ? "variable" : "message";
  const plain = (text) => text.toLowerCase().replace(/\s+/g, " ").trim();
  let entries = []; // read when somebody types, since a page of ten thousand elements has enough to do when it comes
  const read = () => [...document.querySelectorAll("section > section > section")].map((section) => ({
    section, core: plain(section.querySelector("h3 code").textContent), text: plain(section.textContent),
  }));
  const field = Object.assign(document.createElement("input"), {
    type: "search", className: "rl-find-line", autocomplete: "off",
  });
  field.placeholder = variables ? "Paste a name, or an export line" : "Paste a line from your terminal";
  field.setAttribute("aria-label", field.placeholder);
  const told = Object.assign(document.createElement("p"), { className: "rl-found" });
  told.setAttribute("role", "status");
  place.before(field, told);
  const found = (line) => {
    const exact = entries.filter(({ core, text }) => line.includes(core) || text.includes(line));
    const words = [...new Set(line.match(/[a-z_]{4,}/g) || [])];
    if (exact.length || !words.length) return exact;
    const share = ({ text }) => words.filter((word) => text.includes(word)).length / words.length;
    const near = entries.map((entry) => [share(entry), entry]).filter(([part]) => part > 0.6);
    return near.sort((a, b) => b[0] - a[0]).slice(0, 5).map(([, entry]) => entry);
  };
  field.addEventListener("input", () => {
    const line = plain(field.value);
    if (!entries.length) entries = read();
    const shown = new Set((line ? found(line) : entries).map(({ section }) => section));
    for (const { section } of entries) section.hidden = !shown.has(section);
    place.hidden = Boolean(line);
    for (const group of place.parentElement.querySelectorAll(":scope > section"))
      group.hidden = Boolean(line) && ![...group.children].some((child) => shown.has(child));
    told.textContent = !line ? "" : shown.size ? `${shown.size} of ${entries.length} ${noun}s` :
      `No ${noun} has these words. Leave out numbers, paths and names.`;
  });
});
