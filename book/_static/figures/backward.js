// One backward on each rank, recorded: gradients, the sums of their buckets, and what is waited for.
// A slider goes through the sizes of a bucket that were recorded.
"use strict";
rankFigures.kinds.backward = (parts, { runs }) => {
  const { el, svg, slider, film, fitted, text, bar, hatch, color, digits, unique, still } = rankFigures;
  const WORK = 24, SUM = 20, GAP = 16, LEFT = 54, hatched = unique();
  const last = (rank) => Math.max(rank.ended, ...rank.sums.map(([, , arrived]) => arrived));
  const lasts = ([, ranks]) => Math.max(...ranks.map(last));
  const max = Math.max(...runs.map(lasts));
  const waits = (rank) => rank.ended - rank.ready.at(-1);
  const longest = ([, ranks]) => Math.max(...ranks.map((rank) => rank.ended));
  const exposed = ([, ranks]) => Math.max(...ranks.map(waits));
  let chosen = 0;

  // Sums that are under way at the same time lie below each other.
  const levels = (sums) => {
    const free = [];
    return sums.map(([, start, end]) => {
      const found = free.findIndex((until) => until <= start), level = found < 0 ? free.length : found;
      free[level] = end;
      return level;
    });
  };

  const paint = (across) => {
    const ranks = runs[chosen][1], labels = [], rows = [];
    let y = 4;
    ranks.forEach((rank, number) => {
      const level = levels(rank.sums), deep = Math.max(1, ...level.map((each) => each + 1));
      labels.push(text(0, y + 17, `rank ${number}`, { class: "rl-label" }));
      rows.push({ rank, number, level, top: y });
      y += WORK + 3 + deep * SUM + GAP;
    });
    const bars = (faint) => [svg("defs", {}, hatch(hatched)), rows.map(({ rank, number, level, top }) => [
      [rank.began, ...rank.ready].slice(0, -1).map((start, nth) =>
        bar(across(start) + 0.5, top, across(rank.ready[nth]) - across(start) - 1, WORK, { fill: color(number), rx: 1.5 })),
      bar(across(rank.ready.at(-1)), top, across(rank.ended) - across(rank.ready.at(-1)), WORK, { fill: `url(#${hatched})` }),
      rank.sums.map(([label, left, arrived], nth) => {
        const x = across(left), width = across(arrived) - x, under = top + WORK + 3 + level[nth] * SUM;
        const fits = width > 7.2 * label.length + 4;
        return [
          bar(x + 1, under + 1, width - 2, SUM - 3, { class: "rl-open", stroke: color(number), rx: 3 }),
          fits && !faint ? text(x + width / 2, under + 14, label, { class: "rl-inside", "text-anchor": "middle" }) : null,
        ];
      }),
    ])];
    return { height: y - GAP + 8, bars, labels };
  };

  const now = (rank, at) => {
    const done = rank.ready.filter((moment) => moment <= at).length, total = rank.ready.length;
    const under = rank.sums.filter(([, left, arrived]) => left <= at && at < arrived).map(([label]) => label);
    const work = at < rank.began ? "has not begun" : done < total ? `computes gradient ${done + 1} of ${total}`
      : at < rank.ended ? "has all gradients and only waits" : "is done";
    return `${work}; ${under.length ? `under way: ${under.join(", ")}` : "no sum is under way"}.`;
  };
  const says = (at, over) => {
    const [name, ranks] = runs[chosen];
    if (over) {
      const wait = exposed(runs[chosen]), least = Math.min(...runs.map(exposed));
      return [el("b", {}, `${name}: `), `backward takes ${digits(longest(runs[chosen]))} ms, and ${digits(wait)} ms of it are waiting`,
        wait === least && runs.length > 1 ? ", the shortest wait of all." : "."];
    }
    return ranks.map((rank, number) => el("span", { class: "rl-line" }, rankFigures.chip(number, `rank ${number}`), ` ${now(rank, at)}`));
  };

  // All runs below each other: what is computed, and hatched what is waited for.
  const overview = el("div", { class: "rl-overview" });
  const all = (width) => {
    const wide = Math.min(120, width * 0.34), x = (ms) => wide + (ms / max) * (width - wide - 66);
    overview.replaceChildren(svg("svg", { width, height: runs.length * 22 + 2, "aria-hidden": "true" }, runs.map((run, place) => {
      const [name, ranks] = run, y = place * 22 + 2, work = longest(run) - exposed(run);
      return svg("g", { class: place === chosen ? "rl-now" : "rl-then", onclick: () => { size.set(place); choose(place); } },
        bar(0, y - 1, width, 22, { fill: "transparent" }),
        text(0, y + 14, name, { class: "rl-label" }),
        bar(x(0), y + 3, x(work) - x(0), 14, { class: "rl-work" }),
        bar(x(work), y + 3, x(longest(run)) - x(work), 14, { fill: `url(#${hatched})`, class: "rl-wait" }),
        text(x(longest(run)) + 5, y + 14, `${digits(longest(run))} ms`, { class: "rl-label" }), ranks.length ? null : null);
    })));
  };

  const choose = (place) => { chosen = place; shown.again(); small(); };
  const size = slider({
    label: "Buckets", max: runs.length - 1, value: chosen, says: (place) => runs[place][0], oninput: (place) => choose(place),
  });
  if (runs.length > 1) parts.controls.append(size.row);
  const shown = film(parts, { max, left: LEFT, paint, says });
  parts.stage.append(overview);
  const small = fitted(overview, all);
  parts.source.textContent = "Recorded: every gradient, sum and wait, in one backward for each choice. Nothing here is computed but the totals.";
};
