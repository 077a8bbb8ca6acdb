// Ways to the same sum, recorded: after each step what every rank's sum contained, and who had sent what to whom.
"use strict";
rankFigures.kinds.sums = (parts, { ways }) => {
  const { el, slider, choice, chip, color, ink, names, still } = rankFigures;
  let chosen = 0;

  const body = el("tbody"), head = el("tr");
  parts.stage.append(el("div", { class: "rl-sums" }, el("table", {}, el("thead", {}, head), body)));
  const owners = (number) => `${number}`.split("").reverse().flatMap((digit, rank) => (digit === "0" ? [] : [rank]));
  const plain = (rank) => el("i", { style: `background:${color(rank)};color:${ink(rank)}` }, `${rank}`);

  // What came in a step to a rank, by the place of a number: from whom, and whose numbers were in it.
  const came = (step, rank, place) => {
    const [, states, messages] = ways[chosen];
    if (!step) return [];
    return messages[step - 1].filter(([, to, first, length]) => to === rank && first <= place && place < first + length)
      .map(([from]) => ({ from, brought: owners(states[step - 1][from][place]) }));
  };
  const cell = (step, rank, place, number) => {
    const senders = came(step, rank, place).map(({ from }) => from), marks = owners(number).map(plain);
    return el("td", { class: senders.length ? "rl-got" : "", style: senders.length ? `border-color:${color(senders[0])}` : "" },
      el("span", {}, marks), el("small", {}, senders.length ? `from ${senders.join(", ")}` : "\u00a0"));
  };
  const draw = (move) => {
    const states = ways[chosen][1], step = Math.min(at.value, states.length - 1);
    head.replaceChildren(el("td"), ...states[0][0].map((_, place) => el("th", { scope: "col" }, `chunk ${place}`)));
    body.replaceChildren(...states[step].map((row, rank) => el("tr", {}, el("th", { scope: "row" }, chip(rank, `rank ${rank}`)),
      row.map((number, place) => cell(step, rank, place, number)))));
    parts.says.replaceChildren(...tell(step));
    if (!move || still.matches) return;
    states[step].forEach((row, rank) => row.forEach((_, place) => {
      for (const { from, brought } of came(step, rank, place))
        for (const mark of body.rows[rank].cells[place + 1].querySelectorAll("i")) {
          if (!brought.includes(Number(mark.textContent))) continue;
          const to = mark.getBoundingClientRect(), start = body.rows[from].cells[place + 1].getBoundingClientRect();
          mark.animate([{ transform: `translate(${start.left - to.left}px,${start.top - to.top}px)` }, { transform: "none" }],
            { duration: 800, easing: "ease-in-out" });
        }
    }));
  };

  const share = (value) => `${Number(value.toFixed(2))}\u00a0S`;
  const tell = (step) => {
    const [name, states, messages] = ways[chosen];
    const width = states[0][0].length, sent = states[0].map(() => 0), last = states.length - 1;
    for (const each of messages.slice(0, step)) for (const [from, , , length] of each) sent[from] += length / width;
    const most = Math.max(...sent), busiest = sent.flatMap((each, rank) => (each === most ? [rank] : []));
    const done = states[step].flatMap((row, rank) => (row.every((number) => owners(number).length === states[0].length) ? [rank] : []));
    const who = (ranks) => (ranks.length === sent.length ? "all ranks" : names(ranks));
    return [
      el("b", {}, `${name.replaceAll("_", " ")}, ${step ? `after step ${step} of ${last}` : `before the first of ${last} step${last > 1 ? "s" : ""}`}: `),
      step ? `${messages[step - 1].length} message${messages[step - 1].length > 1 ? "s at once" : ""}. So far ${
        busiest.length === sent.length ? "each rank sent" : `${names(busiest)} sent most,`} ${share(most)}. ` : "each rank has its own numbers. ",
      done.length ? `The whole sum is on ${who(done)}.` : "No rank has the whole sum.",
    ];
  };

  const start = (place) => {
    chosen = place;
    at.input.max = ways[chosen][1].length - 1;
    at.set(0);
    draw(false);
  };
  const at = slider({ label: "Step", max: ways[0][1].length - 1, says: (step) => `${step} of ${ways[chosen][1].length - 1}`, oninput: () => draw(true) });
  const go = (by) => { if (at.value + by >= 0 && at.value + by < ways[chosen][1].length) { at.set(at.value + by); draw(by > 0); } };
  const button = (text, by) => el("button", { type: "button", onclick: () => go(by) }, text);
  parts.controls.append(choice({ label: "Way", options: ways.map(([name]) => name.replaceAll("_", " ")), oninput: start }),
    el("div", { class: "rl-times rl-stepping" }, button("Back", -1), button("Next", 1), at.row));
  parts.source.textContent = "Recorded: every message, and what each rank held when the next began. Computed: the steps; a message that waited for an earlier one begins a new step.";
  draw(false);
};
