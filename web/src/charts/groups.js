// Who meets whom: for each step of a period the groups, drawn on the cluster's racks.
import { figure as number, h, s, unique } from "../dom.js";
import { section, table } from "../figure.js";
import { colourOf } from "../look.js";
import { placed, racksOf, workerLinks } from "./topology.js";

const MOST_STEPS = 8;
const letter = (i) =>
  i < 26 ? String.fromCharCode(65 + i) : `${letter(Math.floor(i / 26) - 1)}${letter(i % 26)}`;
const spell = (groups) => groups.map((group) => `{${group.join(" ")}}`).join(" ");

// Runs of equal steps have one picture.
function runs(steps) {
  const found = [];
  steps.slice(0, MOST_STEPS).forEach((groups, step) => {
    const last = found.at(-1);
    if (last && spell(last.groups) === spell(groups)) last.end = step;
    else found.push({ start: step, end: step, groups });
  });
  return found;
}

const runName = ({ start, end }, all) =>
  start === 0 && end === all - 1
    ? "every step"
    : start === end
      ? `step ${start}`
      : `steps ${start} to ${end}`;

// Members are joined along their rows, and each row with the one before where they are nearest.
function bonds(places) {
  const rows = new Map();
  for (const place of places) rows.set(place.y, [...(rows.get(place.y) ?? []), place]);
  const lines = [];
  let above = null;
  for (const row of rows.values()) {
    row.slice(1).forEach((to, i) => lines.push(connection(row[i], to)));
    const pairs = (above ?? []).flatMap((from) => row.map((to) => [from, to]));
    const gap = ([from, to]) => Math.abs(from.x - to.x);
    if (pairs.length > 0)
      lines.push(connection(...pairs.reduce((best, pair) => (gap(pair) < gap(best) ? pair : best))));
    above = row;
  }
  return lines;
}

// A bow where others stand between the two.
function connection(from, to) {
  if (from.y === to.y && Math.abs(to.x - from.x) > 35) {
    const bow = from.y - 24;
    return `M${from.x} ${from.y}Q${(from.x + to.x) / 2} ${bow} ${to.x} ${to.y}`;
  }
  return `M${from.x} ${from.y}L${to.x} ${to.y}`;
}

function picture(run, racks, title) {
  const map = placed(racks, 330);
  const real = run.groups.filter((group) => group.length > 1);
  const lines = real.map((group, i) => {
    const places = group.map((rank) => map.at.get(rank)).filter(Boolean);
    return bonds(places).map((d) => s("path", { class: `bond ${colourOf(i)}`, d, fill: "none" }));
  });
  const worker = ([rank, { x, y }]) => {
    const of = real.map((group, i) => (group.includes(rank) ? i : -1)).filter((i) => i >= 0);
    const look = of.length > 0 ? `worker ${colourOf(of[0])}` : "worker alone";
    return [
      s("circle", { class: look, cx: x, cy: y, r: 12 }),
      s(
        "text",
        { class: "letter", x, y: y + 4, "text-anchor": "middle" },
        of.length > 0 ? of.map(letter).join("") : "·",
      ),
      s("text", { class: "tick", x, y: y + 25, "text-anchor": "middle" }, rank),
    ];
  };
  const boxes = map.boxes.map((box) => s("rect", { class: "rack", ...box, name: null, rx: 6 }));
  const names = map.boxes.map(
    (box) => box.name && s("text", { class: "tick", x: box.x + 8, y: box.y + 14 }, box.name),
  );
  const id = unique("groups");
  return h(
    "figure",
    { class: "map" },
    h("figcaption", { id }, title),
    s(
      "svg",
      {
        viewBox: `0 0 ${map.width} ${map.height}`,
        width: map.width,
        height: map.height,
        role: "img",
        "aria-labelledby": id,
        "aria-label": `${title}: ${spell(run.groups)}`,
      },
      boxes,
      lines,
      names,
      [...map.at].map(worker),
    ),
  );
}

// What the racks are joined by, in words.
function network(model, racks) {
  const inner = workerLinks(model.topology);
  const uplinks = racks.filter((rack) => rack.uplink).map((rack) => rack.uplink);
  const slow = (model.topology?.workers ?? [])
    .map((worker, rank) => [rank, worker.slow])
    .filter(([, factor]) => factor > 1);
  const sentences = [];
  if (inner.length === 1) sentences.push(`Every worker's link: ${inner[0]}.`);
  if (inner.length > 1) sentences.push(`Workers' links from ${inner[0]} to ${inner.at(-1)}.`);
  if (new Set(uplinks).size === 1)
    sentences.push(`A path out of a rack adds, and all its workers share: ${uplinks[0]}.`);
  else if (uplinks.length > 0)
    sentences.push(
      `What a path out of a rack adds, and its workers share: ${racks
        .filter((rack) => rack.uplink)
        .map((rack) => `${rack.name} ${rack.uplink}`)
        .join("; ")}.`,
    );
  slow.forEach(([rank, factor]) => sentences.push(`Worker ${rank} computes ${factor} times as long.`));
  return sentences.join(" ");
}

export function groups(model) {
  const entries = model.ranked.filter((entry) => entry.groups.length > 0);
  const { racks, left } = racksOf(model.topology, model.workers);
  if (entries.length === 0 || racks.length === 0) return null;
  // Contenders that meet in the same way share their pictures.
  const shared = new Map();
  for (const entry of entries) {
    const way = entry.groups.map(spell).join(";");
    if (!shared.has(way)) shared.set(way, []);
    shared.get(way).push(entry);
  }
  const one = (same) => {
    const found = runs(same[0].groups);
    const all = Math.min(same[0].groups.length, MOST_STEPS);
    const title = (run) =>
      run.groups.some((group) => group.length > 1) ? runName(run, all) : `${runName(run, all)}: nobody meets`;
    return h(
      "div",
      { class: "one" },
      h("h3", null, same.map((entry) => entry.name).join(", ")),
      h(
        "div",
        { class: "maps" },
        found.map((run) => picture(run, racks, title(run))),
      ),
    );
  };
  const rows = entries.flatMap((entry) =>
    runs(entry.groups).map((run) => ({
      cells: [entry.name, runName(run, Math.min(entry.groups.length, MOST_STEPS)), spell(run.groups)],
    })),
  );
  return section(
    "groups",
    "Who meets whom",
    h(
      "p",
      null,
      "Workers with one letter and colour exchange with each other in that step; numbers are ranks. ",
      network(model, racks),
      left > 0 && [" Not drawn: ", number(left, `${left} more workers`), "."],
    ),
    [...shared.values()].map(one),
    table({
      caption: "groups by step",
      columns: [{ name: "contender" }, { name: "steps", text: true }, { name: "groups", text: true }],
      rows,
    }),
  );
}
