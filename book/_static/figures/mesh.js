// A mesh of two dimensions and its groups: ranks fill it row by row, as init_device_mesh does, and nodes take them in turn.
"use strict";
// For a rank: its place in each dimension, and the ranks that differ from it in that dimension alone.
rankFigures.computes.mesh = (shape, rank) => {
  const strides = shape.map((_, dim) => shape.slice(dim + 1).reduce((product, size) => product * size, 1));
  const place = shape.map((size, dim) => Math.floor(rank / strides[dim]) % size);
  const groups = shape.map((size, dim) => Array.from({ length: size }, (_, at) => rank + (at - place[dim]) * strides[dim]));
  return { place, groups };
};

rankFigures.kinds.mesh = (parts) => {
  const { el, slider, color, ink, names, unique, computes } = rankFigures;
  const NAMES = ["data", "tensor"], MOST = 8, group = unique();
  const shape = [2, 2];
  let perNode = 2, chosen = 1;
  const table = el("table", { class: "rl-mesh", "aria-label": "Choose a rank" });
  const node = (rank) => Math.floor(rank / perNode);
  const oneNode = (ranks) => ranks.every((rank) => node(rank) === node(ranks[0]));

  const tell = () => {
    const { place, groups } = computes.mesh(shape, chosen);
    for (const cell of table.querySelectorAll("td"))
      cell.classList.toggle("rl-with", groups.some((members) => members.includes(Number(cell.dataset.rank))));
    const all = Array.from({ length: shape[0] * shape[1] }, (_, rank) => rank);
    const stay = (dim) => all.every((rank) => oneNode(computes.mesh(shape, rank).groups[dim]));
    const crossing = NAMES.filter((_, dim) => !stay(dim));
    parts.says.replaceChildren(
      el("b", {}, `Rank ${chosen}`), ` has the place (${place.join(", ")}). `,
      ...NAMES.map((name, dim) => `Its ${name} group: ${names(groups[dim])}${groups[dim].length > 1 ? oneNode(groups[dim]) ? ", on one node" : ", across nodes" : ""}. `),
      el("b", {}, crossing.length ? `Groups that cross nodes: ${crossing.join(" and ")}.` : "No group crosses nodes."));
  };
  const draw = () => {
    chosen = Math.min(chosen, shape[0] * shape[1] - 1);
    table.replaceChildren(...Array.from({ length: shape[0] }, (_, row) => el("tr", {}, Array.from({ length: shape[1] }, (_, column) => {
      const rank = row * shape[1] + column;
      return el("td", { "data-rank": rank }, el("label", {},
        el("input", { type: "radio", name: group, value: rank, checked: rank === chosen, "aria-label": `rank ${rank} on node ${node(rank)}`,
          oninput: () => { chosen = rank; tell(); } }),
        el("span", { class: "rl-tile", style: `background:${color(rank)};color:${ink(rank)}` }, el("b", {}, `${rank}`), el("small", {}, `n${node(rank)}`))));
    }))));
    tell();
  };
  const size = (label, value, set) => slider({ label, min: 1, max: MOST, value, says: (ranks) => `${ranks}`, oninput: (to) => { set(to); draw(); } }).row;
  parts.controls.append(
    size("data", shape[0], (to) => { shape[0] = to; }), size("tensor", shape[1], (to) => { shape[1] = to; }),
    size("Per node", perNode, (to) => { perNode = to; }));
  parts.stage.append(table);
  parts.source.textContent = "Computed: ranks fill the mesh row by row, as the live mesh of this page shows; n0 is node 0. Choose a rank to see its two groups.";
  draw();
};
