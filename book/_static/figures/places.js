// The six numbers that torchrun gives each process, for nodes of any size, computed as ranklab.layout does.
"use strict";
rankFigures.computes.places = (nodes) => {
  const size = nodes.reduce((sum, ranks) => sum + ranks, 0);
  let rank = 0;
  return nodes.flatMap((ranks, node) => Array.from({ length: ranks }, (_, local) => ({
    RANK: rank++, LOCAL_RANK: local, GROUP_RANK: node,
    WORLD_SIZE: size, LOCAL_WORLD_SIZE: ranks, GROUP_WORLD_SIZE: nodes.length,
  })));
};

rankFigures.kinds.places = (parts) => {
  const { el, slider, color, ink, unique, computes } = rankFigures;
  const MOST = 4, sizes = [2, 1, 1, 1], group = unique();
  let count = 2, chosen = 2;
  const map = el("div", { class: "rl-map", role: "radiogroup", "aria-label": "Choose a process" });
  const told = el("pre", { class: "rl-environment", "aria-live": "polite" });

  const tell = () => {
    const all = computes.places(sizes.slice(0, count)), one = all[chosen];
    told.textContent = Object.entries(one).map(([name, value]) => `${name}=${value}`).join("\n");
    const guess = (each) => each.GROUP_RANK * each.LOCAL_WORLD_SIZE + each.LOCAL_RANK;
    const wrong = all.filter((each) => guess(each) !== each.RANK);
    parts.says.replaceChildren("The usual formula, GROUP_RANK × LOCAL_WORLD_SIZE + LOCAL_RANK, gives this process ",
      el("b", {}, `${guess(one)}`), guess(one) === one.RANK ? ", which is its rank. " : `, and its rank is ${one.RANK}. `,
      wrong.length ? `It is wrong for ${wrong.length} of ${all.length} processes.` : "It is right for all of them.");
  };
  const draw = () => {
    const all = computes.places(sizes.slice(0, count));
    chosen = Math.min(chosen, all.length - 1);
    map.replaceChildren(...sizes.slice(0, count).map((_, node) => el("div", { class: "rl-box" }, el("p", {}, `node ${node}`),
      el("div", {}, all.filter((each) => each.GROUP_RANK === node).map((each) => el("label", {},
        el("input", { type: "radio", name: group, value: each.RANK, checked: each.RANK === chosen,
          oninput: () => { chosen = each.RANK; tell(); } }),
        el("span", { class: "rl-tile", style: `background:${color(each.RANK)};color:${ink(each.RANK)}` },
          el("b", {}, `rank ${each.RANK}`), el("br"), `local ${each.LOCAL_RANK}`)))))));
    rows.forEach((row, node) => { row.hidden = node >= count; });
    tell();
  };
  const rows = sizes.map((size, node) => slider({
    label: `On node ${node}`, min: 1, max: MOST, value: size, says: (ranks) => `${ranks} process${ranks > 1 ? "es" : ""}`,
    oninput: (ranks) => { sizes[node] = ranks; draw(); },
  }).row);
  parts.controls.append(slider({
    label: "Nodes", min: 1, max: MOST, value: count, says: (nodes) => `${nodes}`, oninput: (nodes) => { count = nodes; draw(); },
  }).row, ...rows);
  parts.stage.append(map, told);
  parts.source.textContent = "Computed as ranklab numbers its ranks, which this page compares with torchrun's own processes. Choose a process to see its variables.";
  draw();
};
