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
  // "GPipe, 4 stages, 8 micro-batches: 701 ms, predicted 660": three things to choose, if each with each was recorded.
  const short = (name) => name.split(":")[0];
  const pieces = (name) => name.split(", ").map((part) => part.match(/^(\d+) (stage|micro-batch)/) || [part, part, "schedule"]);
  const options = (parted) => parted[0].map((_, at) => [...new Set(parted.map((parts) => parts[at]?.[1]))]);
  let parted = runs.map(([name]) => pieces(short(name)));
  if (options(parted).reduce((product, { length }) => product * length, 1) !== runs.length)
    parted = runs.map(([name]) => [[name, short(name), "schedule"]]);
  const labels = { schedule: "Schedule", stage: "Stages", "micro-batch": "Micro-batches" };
  const asked = options(parted).map((values, at) => ({
    label: labels[parted[0][at][2]], options: values.sort((one, other) => one - other), // words stay in their order
  }));
  const lane = asked.some(({ label }) => label === "Stages") ? "stage" : "rank"; // two stages may be those of ranks 2 and 3
  const wanted = parted[0].map(([, value]) => value);
  let chosen = 0;

  const paint = (across) => {
    const [, measured, ideal] = runs[chosen], labels = [];
    const tops = measured.map((_, rank) => 4 + rank * (LANE + IDEAL + GAP));
    measured.forEach((_, rank) => labels.push(text(0, tops[rank] + 16, `${lane} ${rank}`, { class: "rl-label" })));
    // All bars of a kind have their numbers, or none has.
    const least = [0, 1].map((kind) => Math.min(...measured.flat().filter(([what]) => what === kind).map(([, , start, end]) => across(end) - across(start))));
    const bars = (faint) => measured.map((steps, rank) => [
      steps.map(([what, number, start, end]) => {
        const x = across(start), width = across(end) - x, forward = what === 0;
        const fits = least[what] > (forward ? 7.5 : 9) * `${number}`.length + (forward ? 2 : 4);
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
      return [el("b", {}, `${short(name)}: `), `recorded ${digits(span(measured))} ms, of which a ${lane} is idle `,
        el("b", {}, `${Math.round(100 * idle(measured))}\u00a0%`), `; ideal ${digits(span(ideal))} ms and ${Math.round(100 * idle(ideal))}\u00a0%.`];
    return measured.map((steps, rank) => {
      const step = steps.find(([, , start, end]) => start <= at && at < end), held = steps.filter(([what, , , end]) => what === 0 && end <= at).length
        - steps.filter(([what, , , end]) => what === 1 && end <= at).length;
      const work = step ? `${words[step[0]]} of micro-batch ${step[1]}` : steps.some(([, , start]) => start > at) ? "idle: it waits" : "done";
      return el("span", { class: "rl-line" }, chip(rank, `${lane} ${rank}`), ` ${work}`,
        held > 0 ? `, holds ${held} micro-batch${held > 1 ? "es" : ""} for backward` : "");
    });
  };

  asked.forEach(({ label, options }, at) => {
    if (options.length > 1)
      parts.controls.append(choice({
        label, options, value: options.indexOf(wanted[at]), oninput: (place) => {
          wanted[at] = options[place];
          chosen = parted.findIndex((parts) => parts.every(([, value], nth) => value === wanted[nth]));
          shown.again();
        },
      }));
  });
  const shown = film(parts, { max, left: LEFT, paint, says });
  parts.source.textContent = "Recorded: the thick bars (filled: forward, open: backward). Computed: the thin grey bars, the same schedule where messages take no time.";
};
