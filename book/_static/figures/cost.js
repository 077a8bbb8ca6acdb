// How long an all_reduce takes by the model α + S·β, in a ring and in a tree, computed with the functions of the chapter
// *cost-of-talking*; dots that the chapter measured stand in the same picture.
"use strict";
Object.assign(rankFigures.computes, {
  ring: (ranks, size, alpha, beta) => 2 * (ranks - 1) * (alpha + (size / ranks) * beta),
  tree: (ranks, size, alpha, beta) => 2 * Math.ceil(Math.log2(ranks)) * (alpha + size * beta),
});

rankFigures.kinds.cost = (parts) => {
  const { el, svg, slider, fitted, unique, text, bytes, seconds, digits, computes } = rankFigures;
  const LEFT = 62, BOTTOM = 30, HEIGHT = 250, SIZES = [1e2, 1e10], TIMES = [1e-5, 1e3];
  const RANKS = [2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512];
  const place = el("div"), clip = unique();
  // Sliders go by tenths of a power of ten, and show what a person would have typed.
  const round = (power) => Number((10 ** (power / 10)).toPrecision(2));
  const now = { size: 1.6e7, ranks: 4, alpha: 1e-3, rate: 1e8 };
  const beta = () => 8 / now.rate;

  const draw = (width) => {
    const along = (value, [low, high], from, to) => from + (Math.log(value / low) / Math.log(high / low)) * (to - from);
    const x = (size) => along(size, SIZES, LEFT, width - 10), y = (took) => along(took, TIMES, HEIGHT - BOTTOM, 8);
    const dot = (took) => Math.min(Math.max(y(took), 8), HEIGHT - BOTTOM); // on the edge, where it would lie outside
    const path = (way) => Array.from({ length: 121 }, (_, step) => {
      const size = SIZES[0] * (SIZES[1] / SIZES[0]) ** (step / 120);
      return `${step ? "L" : "M"}${x(size).toFixed(1)} ${y(computes[way](now.ranks, size, now.alpha, beta())).toFixed(1)}`;
    }).join("");
    const took = (way) => computes[way](now.ranks, now.size, now.alpha, beta());
    place.replaceChildren(svg("svg", { width, height: HEIGHT, "aria-hidden": "true" },
      [1e-5, 1e-3, 0.1, 10, 1e3].map((time) => [
        svg("line", { x1: LEFT, x2: width - 10, y1: y(time), y2: y(time), class: "rl-rule" }),
        text(LEFT - 6, y(time) + 4, seconds(time), { class: "rl-tick", "text-anchor": "end" })]),
      [1e2, 1e4, 1e6, 1e8, 1e10].map((size) => [
        svg("line", { x1: x(size), x2: x(size), y1: 8, y2: HEIGHT - BOTTOM, class: "rl-rule" }),
        text(x(size), HEIGHT - 10, bytes(size), { class: "rl-tick", "text-anchor": size > 1e9 ? "end" : "middle", ...(size > 1e9 ? { x: width } : {}) })]),
      svg("clipPath", { id: clip }, svg("rect", { x: LEFT, y: 8, width: width - 10 - LEFT, height: HEIGHT - BOTTOM - 8 })),
      svg("g", { "clip-path": `url(#${clip})` },
        svg("path", { d: path("tree"), class: "rl-curve rl-tree" }), svg("path", { d: path("ring"), class: "rl-curve" })),
      svg("line", { x1: x(now.size), x2: x(now.size), y1: 8, y2: HEIGHT - BOTTOM, class: "rl-cursor" }),
      ["ring", "tree"].map((way) => svg("circle", { cx: x(now.size), cy: dot(took(way)), r: 5, class: `rl-dot rl-${way}` }))));
    const [ring, tree] = [took("ring"), took("tree")], times = digits(Math.max(ring, tree) / Math.min(ring, tree), 2);
    const steps = 2 * (now.ranks - 1), share = (steps * now.alpha) / ring;
    parts.says.replaceChildren(el("b", {}, `Ring: ${seconds(ring)}`), ` in ${steps} steps of ${bytes(now.size / now.ranks)}; `,
      `${share < 0.01 ? "less than 1" : Math.round(100 * share)}\u00a0% of it is α. `, el("b", {}, `Tree: ${seconds(tree)}`),
      ` in ${2 * Math.ceil(Math.log2(now.ranks))} steps of ${bytes(now.size)}. `,
      times === "1" ? "Both take about as long." : `The ${ring < tree ? "ring" : "tree"} is ${times} times as fast.`);
  };

  const power = (label, name, low, high, words) => slider({
    label, min: low, max: high, value: Math.round(10 * Math.log10(now[name])), says: (each) => words(round(each)),
    oninput: (each) => { now[name] = round(each); again(); },
  }).row;
  const rate = (bits) => (bits >= 1e9 ? `${digits(bits / 1e9)} Gbit/s` : `${digits(bits / 1e6)} Mbit/s`);
  parts.controls.append(
    power("Tensor", "size", 20, 100, bytes),
    slider({
      label: "Ranks", max: RANKS.length - 1, value: RANKS.indexOf(now.ranks), says: (nth) => `${RANKS[nth]}`,
      oninput: (nth) => { now.ranks = RANKS[nth]; again(); },
    }).row,
    power("α", "alpha", -60, -20, seconds),
    power("Link", "rate", 70, 120, rate));
  parts.stage.append(el("p", { class: "rl-legend" }, el("span", {}, el("i", { class: "rl-stroke" }), "ring"),
    el("span", {}, el("i", { class: "rl-stroke rl-tree" }), "tree")), place);
  const again = fitted(place, draw);
  parts.source.textContent = "Computed with the chapter's ring_seconds and tree_seconds; β is one byte on the link, 8 / rate. Real calls lie near the lines only where α and β were fitted.";
};
