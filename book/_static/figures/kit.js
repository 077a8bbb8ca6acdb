// What all moving figures share: a frame in the place of the picture, controls that a keyboard and a thumb can use,
// and drawing in SVG at the width of the page, so that letters keep their size on a phone.
//
// A figure is a function of its own file: rankFigures.kinds.<kind> = (frame, values) => {...}. It moves either what was
// recorded (a script.rl-recording below the picture, from bookkit/moving.py), or what it computes (a div.rl-moving in
// the text). Without scripts, and on paper, the picture or the text stays.
"use strict";
const rankFigures = (() => {
  const kinds = {}, computes = {};
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let count = 0;

  const filled = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value === true) node.setAttribute(name, "");
      else if (value !== false && value !== undefined && value !== null) node.setAttribute(name, value);
    }
    node.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== ""));
    return node;
  };
  const el = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) =>
    filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  const unique = () => `rl-moving-${(count += 1)}`;

  // ---- Ranks and numbers ------------------------------------------------------------------------------------------

  const COLORS = 8;
  const color = (rank) => `var(--rl-rank-${rank % COLORS})`;
  // palette.py's label_color: the text that can be read on a rank's colour.
  const ink = (rank) => ["#000000", "#000000", "#ffffff", "#ffffff", "#000000", "#ffffff", "#ffffff", "#000000"][rank % COLORS];
  const chip = (rank, text) =>
    el("span", { class: "rl-rank", style: `background:${color(rank)};color:${ink(rank)}` }, text ?? `${rank}`);
  const names = (ranks) => {
    const text = ranks.length > 1 ? `${ranks.slice(0, -1).join(", ")} and ${ranks.at(-1)}` : `${ranks[0]}`;
    return `${ranks.length > 1 ? "ranks" : "rank"} ${text}`;
  };
  const digits = (value, least = 3) => {
    if (!value) return "0";
    const places = Math.max(0, least - 1 - Math.floor(Math.log10(Math.abs(value))));
    return value.toLocaleString("en", { maximumFractionDigits: Math.min(places, 12) });
  };
  const scaled = (value, units) => {
    const [scale, unit] = units.find(([least]) => value >= least) || units.at(-1);
    return `${digits(value / scale)} ${unit}`;
  };
  const bytes = (value) => scaled(value, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
  const seconds = (value) => scaled(value, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]);

  // ---- Controls ---------------------------------------------------------------------------------------------------

  // A slider with its name and its value in words, which a screen reader hears too.
  const slider = ({ label, min = 0, max, step = 1, value = min, says, oninput }) => {
    const id = unique();
    const input = el("input", { type: "range", id, min, max, step });
    const told = el("output", { for: id });
    const show = () => {
      told.textContent = says(Number(input.value));
      input.setAttribute("aria-valuetext", told.textContent);
    };
    input.value = value;
    show();
    input.addEventListener("input", () => { show(); oninput(Number(input.value)); });
    const set = (to) => { input.value = to; show(); };
    const row = el("div", { class: "rl-slider" }, el("label", { for: id }, label), input, told);
    return { row, input, set, show, get value() { return Number(input.value); } };
  };

  // A few things to choose from, all seen at once: radio buttons, which arrow keys go through.
  const choice = ({ label, options, value = 0, oninput }) => {
    const name = unique();
    const buttons = options.map((text, place) => el("label", {},
      el("input", { type: "radio", name, value: place, checked: place === value, oninput: () => oninput(place) }),
      el("span", {}, text)));
    return el("fieldset", { class: "rl-choice" }, el("legend", {}, label), buttons);
  };

  const number = ({ label, unit, min, max, step = "any", value, oninput }) => {
    const id = unique();
    const input = el("input", { type: "number", id, min, max, step, value, inputmode: "decimal" });
    input.addEventListener("input", () => {
      const good = input.value !== "" && input.checkValidity();
      input.setAttribute("aria-invalid", String(!good));
      if (good) oninput(Number(input.value));
    });
    return el("div", { class: "rl-number" }, el("label", { for: id }, label), input, unit ? el("span", {}, unit) : null);
  };

  // ---- Drawing ----------------------------------------------------------------------------------------------------

  // Call draw(width) now, and again when the page gets wider or narrower, or something that was folded is opened.
  const fitted = (place, draw) => {
    let last = 0;
    const again = () => {
      const width = Math.floor(place.clientWidth);
      if (width > 0 && width !== last) draw((last = width));
    };
    new ResizeObserver(again).observe(place);
    again();
    return () => { last = 0; again(); };
  };

  // Round marks for an axis, at least 70 px apart.
  const ticks = (max, width) => {
    const least = max / Math.max(1, Math.floor(width / 70));
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least * 0.999);
    return Array.from({ length: Math.floor(max / step + 1e-9) + 1 }, (_, place) => Number((place * step).toPrecision(12)));
  };

  const text = (x, y, words, attributes) => svg("text", { x, y, ...attributes }, words);
  const bar = (x, y, width, height, attributes) => svg("rect", { x, y, width: Math.max(0, width), height, ...attributes });
  const hatch = (id) => svg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("rect", { width: 1.6, height: 6, class: "rl-hatch" }));

  // ---- The frame --------------------------------------------------------------------------------------------------

  const frame = ({ title, about, source }) => {
    const parts = {
      controls: el("div", { class: "rl-controls" }), stage: el("div", { class: "rl-stage" }),
      says: el("p", { class: "rl-says" }), source: el("p", { class: "rl-source" }, source || ""),
    };
    const described = about ? unique() : null; // what the picture shows is heard, and not seen
    parts.node = el("div", { class: "rl-figure", role: "group", "aria-label": title, "aria-describedby": described },
      el("p", { class: "rl-what" }, title), about ? el("p", { id: described, hidden: true }, about) : null,
      parts.controls, parts.stage, parts.says, parts.source);
    return parts;
  };

  // What is recorded stands in the script; the picture is what comes before it in the output of the cell.
  const recorded = (script) => {
    const values = JSON.parse(script.textContent);
    const own = script.closest(".output") || script;
    const pictures = [];
    for (let each = own.previousElementSibling; each && !pictures.length; each = each.previousElementSibling)
      if (each.matches("img, picture, svg, figure") || each.querySelector("img, svg")) pictures.push(each);
    if (!pictures.length || !kinds[values.kind]) return;
    const image = pictures[0].matches("img") ? pictures[0] : pictures[0].querySelector("img");
    const parts = frame({ title: values.title || "A figure that moves", about: image?.alt });
    pictures[0].before(parts.node);
    kinds[values.kind](parts, values);
    pictures[0].classList.add("rl-on-paper");
  };

  const computed = (place) => {
    const kind = kinds[place.dataset.figure];
    if (!kind) return;
    const parts = frame({ title: place.dataset.title });
    place.before(parts.node);
    kind(parts, { ...place.dataset });
    place.classList.add("rl-on-paper");
  };

  const start = () => {
    for (const script of document.querySelectorAll("script.rl-recording")) recorded(script);
    for (const place of document.querySelectorAll("div.rl-moving")) computed(place);
  };
  document.addEventListener("DOMContentLoaded", start);

  return {
    kinds, computes, still, el, svg, unique, color, ink, chip, names, digits, bytes, seconds,
    slider, choice, number, fitted, ticks, text, bar, hatch,
  };
})();
