// A hang, second by second: recorded is when each rank came to a call and when it left it; who waits for whom follows.
"use strict";
rankFigures.kinds.waiting = (parts, { ranks, end }) => {
  const { el, svg, film, text, bar, hatch, color, chip, names, digits, unique } = rankFigures;
  const LANE = 30, GAP = 12, LEFT = 54, hatched = unique(), head = unique();

  // The n-th call of a name on one rank belongs to the n-th call of that name on the others.
  const named = ranks.map(({ calls }) => {
    const seen = {};
    return calls.map(([name, entered, left]) => ({ name, nth: (seen[name] = (seen[name] || 0) + 1), entered, left: left ?? Infinity }));
  });
  const call = ({ name, nth }) => `${name} ${nth}`;
  const failed = (rank, at) => ranks[rank].error !== null && ranks[rank].error <= at;
  const current = (rank, at) => (failed(rank, at) ? undefined : named[rank].find(({ entered, left }) => entered <= at && at < left));
  // Those who have not come to the call in which a rank is.
  const missing = (rank, at) => {
    const here = current(rank, at);
    if (!here) return [];
    const came = (other) => named[other].some((each) => each.name === here.name && each.nth === here.nth && each.entered <= at);
    return ranks.map((_, other) => other).filter((other) => !came(other));
  };
  const errors = ranks.map(({ error }) => error).filter((error) => error !== null);
  const gaveUp = Math.min(end, ...errors);
  // The last moment, before the end, at which a rank entered or left a call: from then on nothing moves.
  const moved = Math.max(0, ...named.flat().flatMap(({ entered, left }) => [entered, left]).filter((moment) => moment < gaveUp - 1));

  const top = (rank) => 6 + rank * (LANE + GAP);
  const paint = (across) => {
    const labels = ranks.map((_, rank) => text(0, top(rank) + 20, `rank ${rank}`, { class: "rl-label" }));
    const until = (moment) => Math.min(moment, end);
    const bars = (faint) => [svg("defs", {}, hatch(hatched)), ranks.map(({ error }, rank) => {
      const stop = until(error ?? end);
      let from = 0;
      const pieces = named[rank].filter(({ entered }) => entered < stop).map((each) => {
        const x = across(each.entered), width = across(Math.min(until(each.left), stop)) - x, own = from;
        from = each.left;
        const label = call(each), fits = width > 7.4 * label.length + 8;
        return [
          bar(across(own) + 0.5, top(rank), x - across(own) - 1, LANE, { fill: color(rank), rx: 3 }),
          bar(x + 1, top(rank) + 1, width - 2, LANE - 2, { class: "rl-open", stroke: color(rank), rx: 3 }),
          bar(x + 2, top(rank) + 2, width - 4, LANE - 4, { fill: `url(#${hatched})`, opacity: 0.45 }),
          fits && !faint ? [bar(x + width / 2 - 3.7 * label.length - 3, top(rank) + 6, 7.4 * label.length + 6, 18, { class: "rl-paper", rx: 3 }),
            text(x + width / 2, top(rank) + 19.5, label, { class: "rl-inside", "text-anchor": "middle" })] : null,
        ];
      });
      return [pieces, from < stop ? bar(across(from), top(rank), across(stop) - across(from), LANE, { fill: color(rank), rx: 3 }) : null,
        error === null ? null : bar(across(error) - 2, top(rank) - 3, 4, LANE + 6, { class: "rl-error-mark" })];
    })];
    return { height: top(ranks.length - 1) + LANE + 8, bars, labels };
  };

  // An arrow from each rank that waits to each that it waits for.
  const over = (at, across) => [
    svg("marker", { id: head, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto-start-reverse" },
      svg("path", { d: "M0 0L8 4L0 8z", class: "rl-arrowhead" })),
    ...ranks.flatMap((_, rank) => missing(rank, at).map((other) => {
      const down = other > rank, x = Math.max(LEFT + 12, across(at) - 10 - 13 * rank);
      return svg("line", { x1: x, x2: x, y1: top(rank) + (down ? LANE - 4 : 4), y2: top(other) + (down ? 3 : LANE - 3),
        class: "rl-arrow", "marker-end": `url(#${head})` });
    })),
  ];

  const state = (rank, at) => {
    if (failed(rank, at)) return "gets an error, because the time of the group is over";
    const here = current(rank, at), absent = missing(rank, at);
    if (!here) return named[rank].some(({ entered }) => entered > at) ? "is in its own code" : "has left its last call";
    return absent.length ? `waits in ${call(here)} for ${names(absent)}` : `is in ${call(here)}, and all have come`;
  };
  const says = (at, over) => [
    ...ranks.map((_, rank) => el("span", { class: "rl-line" }, chip(rank, `rank ${rank}`), ` ${state(rank, at)}`)),
    at > moved && errors.length
      ? el("b", {}, over ? `From ${digits(moved / 1000, 2)} s on nobody moved, and nothing was printed until the time was over.`
        : `Nobody has moved for ${digits((Math.min(at, gaveUp) - moved) / 1000, 2)} s.`) : "\u00a0",
  ];
  film(parts, { max: end, left: LEFT, paint, says, over });
  parts.source.textContent = "Recorded: when each rank came to a call and left it (hatched). Computed: who waits for whom, from who has not come yet.";
};
