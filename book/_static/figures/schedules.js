// Schedules of a pipeline, recorded: what each stage computed when, and below it what a machine without messages would do.
"use strict";
rankFigures.kinds.schedules = (parts, { runs }) => {
  const { el, film, choice, text, bar, color, ink, chip, digits } = rankFigures;
  const LANE = 22, IDEAL = 7, GAP = 9, LEFT = 54;
  const span = (ranks) => Math.max(...ranks.flat().map((step) => step[3]));
  const max = Math.max(...runs.flatMap(([, measured, ideal]) => [span(measured), span(ideal)]));
  const busy = (steps) => steps.reduce((sum, [, , start, end]) => sum + end - start, 0);
  const idle = (ranks) => 1 - ranks.reduce((sum, steps) => sum + busy(steps), 0) / (ranks.length * span(ranks));
  const words = ["forward", "backward"];
  // "GPipe, 8 micro-batches: 701 ms, predicted 660": the numbers stand below.
  const short = (name) => name.split(":")[0];
  const brief = (name) => short(name).replace(/, (\d+) micro-batch(es)?$/, " × $1");
  let chosen = 0;

  const paint = (across) => {
    const [, measured, ideal] = runs[chosen], labels = [];
    const tops = measured.map((_, rank) => 4 + rank * (LANE + IDEAL + GAP));
    measured.forEach((_, rank) => labels.push(text(0, tops[rank] + 16, `rank ${rank}`, { class: "rl-label" })));
    const bars = (faint) => measured.map((steps, rank) => [
      steps.map(([what, number, start, end]) => {
        const x = across(start), width = across(end) - x, forward = what === 0;
        const fits = width > 9 * `${number}`.length + 3;
        return [
          forward ? bar(x + 0.5, tops[rank], width - 1, LANE, { fill: color(rank), rx: 2 })
            : bar(x + 1.5, tops[rank] + 1, width - 3, LANE - 2, { class: "rl-open", stroke: color(rank), rx: 2 }),
          fits && !faint ? text(x + width / 2, tops[rank] + 15.5, `${number}`,
            { class: "rl-inside", "text-anchor": "middle", style: forward ? `fill:${ink(rank)}` : "" }) : null,
        ];
      }),
      ideal[rank].map(([what, , start, end]) => bar(across(start) + 0.5, tops[rank] + LANE + 2, across(end) - across(start) - 1,
        IDEAL - 2, { class: what === 0 ? "rl-ideal" : "rl-ideal rl-ideal-open" })),
    ]);
    return { height: tops.at(-1) + LANE + IDEAL + 6, bars, labels };
  };

  const says = (at, over) => {
    const [name, measured, ideal] = runs[chosen];
    if (over)
      return [el("b", {}, `${short(name)}: `), `recorded ${digits(span(measured))} ms, of which a rank is idle `,
        el("b", {}, `${Math.round(100 * idle(measured))}\u00a0%`), `; ideal ${digits(span(ideal))} ms and ${Math.round(100 * idle(ideal))}\u00a0%.`];
    return measured.map((steps, rank) => {
      const step = steps.find(([, , start, end]) => start <= at && at < end), held = steps.filter(([what, , , end]) => what === 0 && end <= at).length
        - steps.filter(([what, , , end]) => what === 1 && end <= at).length;
      const work = step ? `${words[step[0]]} of micro-batch ${step[1]}` : steps.some(([, , start]) => start > at) ? "idle: it waits" : "done";
      return el("span", { class: "rl-line" }, chip(rank, `rank ${rank}`), ` ${work}`,
        held > 0 ? `, holds ${held} micro-batch${held > 1 ? "es" : ""} for backward` : "");
    });
  };

  if (runs.length > 1)
    parts.controls.append(choice({
      label: runs.some(([name]) => brief(name) !== short(name)) ? "Schedule × micro-batches" : "Schedule", options: runs.map(([name]) => brief(name)), value: chosen, oninput: (place) => { chosen = place; shown.again(); },
    }));
  const shown = film(parts, { max, left: LEFT, paint, says });
  parts.source.textContent = "Recorded: the thick bars (filled: forward, open: backward). Computed: the thin grey bars, the same schedule where messages take no time.";
};
