// A film of lanes: what happened up to the moment of the slider is drawn in full, what comes is faint and has no words.
"use strict";
rankFigures.film = (parts, { max, left = 52, label = "Time", paint, says, over }) => {
  const { el, svg, slider, fitted, ticks, text, digits, still, unique } = rankFigures;
  const clip = unique(), SECONDS = 8, RIGHT = 8;
  const [unit, scale] = max > 3000 ? ["s", 1000] : ["ms", 1];
  const step = Math.max(1, Math.round(max / 200)); // so far an arrow key goes
  const ending = step * Math.ceil(max / step);
  const place = el("div", { class: "rl-film" });
  let playing = 0, tallest = 0, edge = null, cursor = null, above = null, across = null;

  const time = slider({
    label, max: ending, step, value: ending, says: (now) => `${digits(Math.min(now, max) / scale, scale > 1 ? 2 : 3)} ${unit}`,
    oninput: () => { stop(); show(); },
  });
  const play = el("button", { type: "button", class: "rl-play", onclick: () => (playing ? stop() : begin()) }, "Play");
  const row = el("div", { class: "rl-times" }, play, time.row);

  const show = () => {
    const now = Math.min(time.value, max);
    parts.says.replaceChildren(...[says(now, time.value >= ending)].flat());
    tallest = Math.max(tallest, parts.says.offsetHeight);
    parts.says.style.minHeight = `${tallest}px`; // what stands below does not jump
    if (!cursor) return;
    above.replaceChildren(...(over ? over(now, across) : []));
    edge.setAttribute("width", Math.max(0, across(now) + 1));
    for (const edge of ["x1", "x2"]) cursor.setAttribute(edge, across(now));
    cursor.setAttribute("opacity", time.value >= ending ? 0 : 1);
  };
  const stop = () => { cancelAnimationFrame(playing); playing = 0; play.textContent = "Play"; };
  const begin = () => {
    const from = time.value >= ending ? 0 : time.value;
    let first = 0;
    const move = (now) => {
      first = first || now;
      time.set(Math.min(ending, from + ((now - first) / (1000 * SECONDS)) * ending));
      show();
      if (time.value >= ending) stop();
      else playing = requestAnimationFrame(move);
    };
    play.textContent = "Pause";
    playing = requestAnimationFrame(move);
  };

  const draw = (width) => {
    tallest = 0;
    across = (ms) => left + (ms / max) * (width - left - RIGHT);
    const { height, bars, labels } = paint(across, width);
    const marks = ticks(max / scale, width - left - RIGHT), last = marks.length - 1;
    edge = svg("rect", { x: 0, y: 0, width, height });
    above = svg("g");
    cursor = svg("line", { y1: 0, y2: height, class: "rl-cursor" });
    place.replaceChildren(
      svg("svg", { width, height: height + 22, viewBox: `0 0 ${width} ${height + 22}`, "aria-hidden": "true" },
        svg("clipPath", { id: clip }, edge),
        marks.map((mark) => svg("line", { x1: across(mark * scale), x2: across(mark * scale), y1: 0, y2: height, class: "rl-rule" })),
        marks.map((mark, nth) => text(
          nth === last ? Math.min(width - 2, across(mark * scale) + 14) : across(mark * scale), height + 16,
          nth === last ? `${digits(mark)} ${unit}` : digits(mark),
          { class: "rl-tick", "text-anchor": nth === last ? "end" : nth ? "middle" : "start" })),
        labels,
        svg("g", { class: "rl-coming" }, bars(true)),
        svg("g", { "clip-path": `url(#${clip})` }, bars()),
        cursor, above));
    show();
  };
  parts.stage.append(place);
  parts.controls.append(row);
  play.hidden = still.matches;
  const again = fitted(place, draw);
  return { again: () => { stop(); again(); } }; // for another run
};
