// What an operation moved, recorded: the numbers of every rank before and after, each in the colour of where it was.
"use strict";
rankFigures.kinds.exchange = (parts, { grids }) => {
  const { el, choice, chip, color, ink, names, still } = rankFigures;
  const before = grids[0][1];
  const wide = Math.max(...grids.flatMap(([, rows]) => rows.map((row) => row.length)));
  let shown = 0;

  // The rank and the place of each number that one rank alone held, once.
  const homes = new Map();
  before.forEach((row, rank) => row.forEach((number, place) => homes.set(number, homes.has(number) ? null : { rank, place })));

  const body = el("tbody");
  const table = el("table", { class: "rl-exchange" }, body);
  const cell = (number) => {
    if (number === undefined) return el("td");
    const home = homes.get(number);
    return el("td", {}, el("span", { class: home ? "rl-number-of" : "rl-number-of rl-computed",
      style: home ? `background:${color(home.rank)};color:${ink(home.rank)}` : "" }, `${number}`));
  };
  const draw = (move) => {
    const rows = grids[shown][1];
    body.replaceChildren(...rows.map((row, rank) => el("tr", {}, el("th", { scope: "row" }, chip(rank, `rank ${rank}`)),
      Array.from({ length: wide }, (_, place) => (row.length ? cell(row[place]) : place ? el("td") : el("td", {}, "–"))))));
    parts.says.replaceChildren(tell());
    if (!move || still.matches) return;
    const place = (rank, column) => body.rows[rank].cells[column + 1].getBoundingClientRect();
    rows.forEach((row, rank) => row.forEach((number, column) => {
      const home = homes.get(number), mark = body.rows[rank].cells[column + 1].firstChild;
      if (!home) mark.animate([{ opacity: 0 }, { opacity: 0, offset: 0.5 }, { opacity: 1 }], { duration: 900 });
      else if (home.rank !== rank || home.place !== column) {
        const from = place(home.rank, home.place), to = place(rank, column);
        mark.animate([{ transform: `translate(${from.left - to.left}px,${from.top - to.top}px)` }, { transform: "none" }],
          { duration: 900, easing: "ease-in-out" });
      }
    }));
  };

  const count = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;
  const tell = () => {
    const [name, rows] = grids[shown];
    if (!shown) return "Before the call each rank has its own numbers, in its own colour. Choose a call.";
    const all = rows.flatMap((row, rank) => row.map((number) => ({ rank, home: homes.get(number) })));
    const came = all.filter(({ rank, home }) => home && home.rank !== rank), made = all.filter(({ home }) => !home).length;
    const from = [...new Set(came.map(({ home }) => home.rank))].sort((a, b) => a - b);
    const none = rows.flatMap((row, rank) => (row.length ? [] : [rank]));
    return [`${name}: `, came.length ? `${count(came.length, "number")} came from another rank, ${names(from)}. ` : "",
      made ? `${count(made, "number")} that no rank had before ${made === 1 ? "was" : "were"} computed. ` : "",
      none.length ? `Nothing is left for ${names(none)}.` : ""].join("");
  };

  parts.controls.append(choice({
    label: "Call", options: grids.map(([name]) => name), value: 0, oninput: (place) => { shown = place; draw(true); },
  }));
  parts.stage.append(table);
  parts.source.textContent = "Recorded: the numbers of every rank before and after each call. Computed: where each came from, by its value; the way is drawn straight.";
  draw(false);
};
