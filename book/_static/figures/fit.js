// The line fixed + slope · bytes against the times that were measured: find the two numbers by hand.
"use strict";
rankFigures.computes.fit = (fixed, slope, size) => fixed + slope * size;

rankFigures.kinds.fit = (parts, { series }) => {
  const { el, svg, slider, choice, fitted, text, bytes, seconds, digits, unique, computes } = rankFigures;
  const LEFT = 62, BOTTOM = 30, HEIGHT = 240, PER = 20; // steps of a slider to a power of ten
  const place = el("div"), clip = unique();
  const all = series.flatMap(([, , seen, news]) => [...seen, ...news]);
  const power = (values, by) => [10 ** Math.floor(Math.log10(Math.min(...values)) - by), 10 ** Math.ceil(Math.log10(Math.max(...values)) + by)];
  const [SIZES, TIMES] = [power(all.map(([size]) => size), 0), power(all.map(([, took]) => took), 0.3)];
  const rates = series.map(([, line]) => 1 / line[1]), calls = series.map(([, line]) => line[0]);
  const near = (value) => Math.round(PER * Math.log10(value));
  const [least, most] = [(values) => near(Math.min(...values)) - PER, (values) => near(Math.max(...values)) + PER];
  let nth = series.length - 1, line = [...series[nth][1]];

  // How far the times lie from a line, typically: the middle of all distances.
  const miss = ([fixed, slope], points) => {
    const off = points.map(([size, took]) => Math.abs(took / computes.fit(fixed, slope, size) - 1)).sort((a, b) => a - b);
    return off.length ? off[Math.floor(off.length / 2)] : 0;
  };
  const percent = (part) => `${digits(100 * part, 2)}\u00a0%`;
  const speed = (rate) => `${bytes(rate)}/s`;

  const draw = (width) => {
    const along = (value, [low, high], from, to) => from + (Math.log(value / low) / Math.log(high / low)) * (to - from);
    const x = (size) => along(size, SIZES, LEFT, width - 12), y = (took) => along(took, TIMES, HEIGHT - BOTTOM, 8);
    const powers = ([low, high], by) => Array.from({ length: Math.floor(Math.log10(high / low) / by + 1e-6) + 1 }, (_, step) => low * 10 ** (by * step));
    const path = ([fixed, slope]) => Array.from({ length: 81 }, (_, step) => {
      const size = SIZES[0] * (SIZES[1] / SIZES[0]) ** (step / 80);
      return `${step ? "L" : "M"}${x(size).toFixed(1)} ${y(computes.fit(fixed, slope, size)).toFixed(1)}`;
    }).join("");
    const [, own, seen, news] = series[nth];
    place.replaceChildren(svg("svg", { width, height: HEIGHT, "aria-hidden": "true" },
      svg("clipPath", { id: clip }, svg("rect", { x: LEFT, y: 8, width: width - 12 - LEFT, height: HEIGHT - BOTTOM - 8 })),
      powers(TIMES, 1).map((took) => [svg("line", { x1: LEFT, x2: width - 12, y1: y(took), y2: y(took), class: "rl-rule" }),
        text(LEFT - 6, y(took) + 4, seconds(took), { class: "rl-tick", "text-anchor": "end" })]),
      powers(SIZES, 2).map((size) => [svg("line", { x1: x(size), x2: x(size), y1: 8, y2: HEIGHT - BOTTOM, class: "rl-rule" }),
        text(x(size), HEIGHT - 10, bytes(size), { class: "rl-tick", "text-anchor": "middle" })]),
      svg("g", { "clip-path": `url(#${clip})` }, svg("path", { d: path(own), class: "rl-curve rl-fitted" }), svg("path", { d: path(line), class: "rl-curve" })),
      seen.map(([size, took]) => svg("circle", { cx: x(size), cy: y(took), r: 5, class: "rl-measured" })),
      news.map(([size, took]) => svg("circle", { cx: x(size), cy: y(took), r: 4.5, class: "rl-hollow" }))));
    parts.says.replaceChildren(`A call costs ${seconds(line[0])}, a byte ${seconds(line[1])}. Typically this line misses the filled dots by `,
      el("b", {}, percent(miss(line, seen))), `; the fitted line misses them by ${percent(miss(own, seen))}`,
      news.length ? ` and the hollow dots, which it never saw, by ${percent(miss(own, news))}.` : ".");
  };

  const call = slider({ label: "Per call", min: least(calls), max: most(calls), value: near(line[0]), says: (step) => seconds(10 ** (step / PER)),
    oninput: (step) => { line[0] = 10 ** (step / PER); again(); } });
  const rate = slider({ label: "Rate", min: least(rates), max: most(rates), value: near(1 / line[1]), says: (step) => speed(10 ** (step / PER)),
    oninput: (step) => { line[1] = 10 ** (-step / PER); again(); } });
  const back = () => { line = [...series[nth][1]]; call.set(near(line[0])); rate.set(near(1 / line[1])); again(); };
  if (series.length > 1)
    parts.controls.append(choice({ label: "Times of", options: series.map(([name]) => name), value: nth, oninput: (to) => { nth = to; back(); } }));
  parts.controls.append(call.row, rate.row, el("div", {}, el("button", { type: "button", onclick: back }, "The fitted line")));
  parts.stage.append(place);
  const again = fitted(place, draw);
  parts.source.textContent = "Recorded: the dots. Computed: the lines, yours drawn through and the fitted one dotted; hollow dots were not fitted.";
};
