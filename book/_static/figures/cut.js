// Where to cut a network in two, recorded: what every piece keeps and how long it takes; a slider moves the cut.
"use strict";
rankFigures.kinds.cut = (parts, { pieces, costs }) => {
  const { el, svg, slider, fitted, text, bar, color, ink, bytes, seconds, digits } = rankFigures;
  const LANE = 46, RULER = 26, MB = 1e6;
  const words = { activations: bytes, parameters: (count) => `${digits(count / MB)} M` };
  const said = (name, value) => (words[name] || seconds)(value);
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const halves = (values, cut) => [sum(values.slice(0, cut)), sum(values.slice(cut))];
  const nearest = (values) => Array.from({ length: pieces.length - 1 }, (_, nth) => nth + 1)
    .reduce((best, cut) => (Math.abs(halves(values, cut)[0] - halves(values, cut)[1]) < Math.abs(halves(values, best)[0] - halves(values, best)[1]) ? cut : best));
  const place = el("div");
  let cut = nearest(costs[0][1]);

  const draw = (width) => {
    const x = (part) => part * (width - 1);
    const lanes = costs.map(([name, values], nth) => {
      const [first, second] = halves(values, cut), share = first / (first + second), y = RULER + 12 + nth * LANE;
      const label = (rank, value, left, room) => {
        const words = `${said(name, value)}`;
        return room > 7.6 * words.length + 8 ? text(left + room / 2, y + 33, words, { class: "rl-inside", "text-anchor": "middle", style: `fill:${ink(rank)}` }) : null;
      };
      return [text(0, y + 12, `${name}: rank 0 has ${Math.round(100 * share)} %`, { class: "rl-label" }),
        bar(0, y + 18, x(share), 22, { fill: color(0), rx: 3 }), bar(x(share) + 1, y + 18, x(1 - share) - 1, 22, { fill: color(1), rx: 3 }),
        label(0, first, 0, x(share)), label(1, second, x(share), x(1 - share))];
    });
    const height = RULER + 12 + costs.length * LANE;
    place.replaceChildren(svg("svg", { width, height, "aria-hidden": "true" },
      pieces.map((_, nth) => bar(x(nth / pieces.length) + 1, 0, x(1 / pieces.length) - 2, RULER - 6, { fill: color(nth < cut ? 0 : 1), rx: 2 })),
      lanes,
      costs.flatMap((_, nth) => [27, 47].map((y) => // above and below the words in the bar
        svg("line", { x1: x(0.5), x2: x(0.5), y1: RULER + y + nth * LANE, y2: RULER + y + 7 + nth * LANE, class: "rl-half" })))));
    const step = costs.find(([name]) => name === "step time");
    const [first, second] = step ? halves(step[1], cut) : [1, 1];
    const waits = 1 - Math.min(first, second) / Math.max(first, second);
    parts.says.replaceChildren(el("b", {}, `Cut before ${pieces[cut]}. `),
      step ? `If both ranks had work all the time, rank ${first < second ? 0 : 1} would wait ${Math.round(100 * waits)}\u00a0% of it for the other. ` : "",
      `Nearest to half: ${costs.map(([name, values]) => `${name} after ${nearest(values)}`).join(", ")}.`);
  };
  parts.controls.append(slider({
    label: "Cut after", min: 1, max: pieces.length - 1, value: cut, says: (after) => `${after} of ${pieces.length}`,
    oninput: (after) => { cut = after; again(); },
  }).row);
  parts.stage.append(place);
  const again = fitted(place, draw);
  parts.source.textContent = "Recorded: activations and times of each piece, in one process. Computed: the sums on either side of the cut, and the waiting. The two marks of a bar are at one half.";
};
