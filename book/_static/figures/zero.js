// What a rank keeps under DDP and the three steps of ZeRO, computed with the formula of the chapter *sharded*.
"use strict";
rankFigures.computes.zero = (weight, gradient, adam, ranks) => [
  weight + gradient + adam,
  weight + gradient + adam / ranks,
  weight + (gradient + adam) / ranks,
  (weight + gradient + adam) / ranks,
];

rankFigures.kinds.zero = (parts) => {
  const { el, svg, slider, number, choice, fitted, text, bar, digits, computes } = rankFigures;
  const NAMES = ["DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3"], PARTS = ["weights", "gradients", "Adam"];
  const KINDS = [["float32", [4, 4, 8]], ["mixed precision", [2, 2, 12]]];
  const LEFT = 60, RIGHT = 66, LANE = 34;
  const now = { billions: 7.5, ranks: 64, kind: 1, memory: 80 };
  const place = el("div");

  // From the first name on, one more part from the right is divided among the ranks.
  const held = (nth) => KINDS[now.kind][1].map((bytes, part) => (part + nth >= 3 ? bytes / now.ranks : bytes));

  const draw = (width) => {
    const totals = computes.zero(...KINDS[now.kind][1], now.ranks).map((bytes) => bytes * now.billions);
    const most = Math.max(totals[0], now.memory) * 1.02, room = width - LEFT - RIGHT;
    const across = (gigabytes) => LEFT + (gigabytes / most) * room;
    const fits = totals.map((total) => total <= now.memory);
    const lanes = NAMES.map((name, nth) => {
      const y = 24 + nth * LANE;
      let from = 0;
      const pieces = held(nth).map((bytes, part) => {
        const start = from;
        from += bytes * now.billions;
        return bar(across(start), y, Math.max(across(from) - across(start) - 0.7, 0.4), 22, { class: `rl-part-${part}` });
      });
      return [pieces, text(0, y + 16, name, { class: "rl-label" }),
        text(across(from) + 5, y + 16, `${digits(totals[nth])} GB`, { class: fits[nth] ? "rl-fits" : "rl-over" })];
    });
    const line = across(now.memory), height = 24 + NAMES.length * LANE;
    place.replaceChildren(svg("svg", { width, height, "aria-hidden": "true" }, lanes,
      svg("line", { x1: line, x2: line, y1: 18, y2: height - 6, class: "rl-limit" }),
      text(Math.min(line, width - 4), 13, `${now.memory} GB`, { class: "rl-tick", "text-anchor": line > width - 60 ? "end" : "middle" })));
    const words = NAMES.map((name, nth) => `${name} ${digits(totals[nth])} GB`).join(", ");
    const first = fits.indexOf(true);
    parts.says.replaceChildren(`On each rank: ${words}. `, el("b", {},
      first < 0 ? `None of them fits into ${now.memory} GB.`
        : first ? `${NAMES[first]} is the first that fits into ${now.memory} GB.`
          : `All of them fit into ${now.memory} GB.`));
  };

  const change = (name) => (value) => { now[name] = value; again(); };
  parts.controls.append(
    number({ label: "Parameters", unit: "billion", min: 0.001, max: 10000, value: now.billions, oninput: change("billions") }),
    slider({
      label: "Ranks", max: 12, value: 6, says: (power) => `${2 ** power}`, oninput: (power) => change("ranks")(2 ** power),
    }).row,
    choice({ label: "Numbers", options: KINDS.map(([name]) => name), value: now.kind, oninput: change("kind") }),
    number({ label: "Memory", unit: "GB per rank", min: 1, max: 100000, value: now.memory, oninput: change("memory") }));
  parts.stage.append(
    el("p", { class: "rl-legend" }, PARTS.map((name, part) => el("span", {}, el("i", { class: `rl-part-${part}` }), name))), place);
  const again = fitted(place, draw);
  parts.source.textContent = "Computed with the chapter's formula, for weights, gradients and Adam. Activations and buffers come on top.";
};
