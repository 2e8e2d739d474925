// Who was fastest: a bar each, and everything that was measured in a table.
import { scaleLinear } from "d3-scale";
import { figure, s } from "../dom.js";
import { chart, section, table } from "../figure.js";
import * as as from "../format.js";
import { heightOf, rows } from "./rows.js";

const LAYOUT = { top: 0, body: 16, gap: 14 };

export function scoreName(model) {
  if (model.target !== null) return `seconds to ${as.percent(model.target, 0)} accuracy`;
  const effective = model.entries.some((entry) => entry.effective !== null && entry.effective !== entry.step);
  return effective ? "seconds per effective step" : "seconds per step";
}

function valueOf(model, entry) {
  if (entry.failed) return "failed";
  const score = model.score(entry);
  if (score === null) return model.target !== null ? "target not reached" : "no figure";
  if (entry === model.baseline) return `${as.seconds(score)} · the baseline`;
  return entry.speedup === null ? as.seconds(score) : `${as.seconds(score)} · ${as.times(entry.speedup)}`;
}

function draw(model, width) {
  const most = Math.max(...model.finished.map((entry) => model.score(entry) ?? 0), Number.MIN_VALUE);
  const x = scaleLinear([0, most], [0, width]);
  const best = model.finished[0];
  const bar = (entry, y) => {
    const score = entry.failed ? null : model.score(entry);
    const look = entry === best ? "bar best" : entry === model.baseline ? "bar base" : "bar";
    return [
      s("line", { class: "grid", x1: 0, x2: width, y1: y + LAYOUT.body, y2: y + LAYOUT.body }),
      score === null
        ? null
        : s("rect", { class: look, x: 0, y, width: Math.max(1, x(score)), height: LAYOUT.body, rx: 2 }),
    ];
  };
  const marks = rows(model.ranked, width, { ...LAYOUT, value: (entry) => valueOf(model, entry) }, bar);
  return { height: heightOf(model.ranked.length, LAYOUT), marks };
}

// Columns that nobody has anything to say in are left out.
const COLUMNS = [
  {
    name: "time to target",
    of: (entry) => entry.toTarget,
    as: as.seconds,
    if: (model) => model.target !== null,
  },
  { name: "speed-up", of: (entry) => entry.speedup, as: as.times },
  { name: "efficiency", of: (entry) => entry.efficiency, as: (value) => as.percent(value, 0) },
  { name: "step", of: (entry) => entry.step, as: as.seconds },
  {
    name: "per effective step",
    of: (entry) => entry.effective,
    as: as.seconds,
    if: (model) => scoreName(model).includes("effective"),
  },
  { name: "compute", of: (entry) => entry.compute, as: as.seconds },
  { name: "exposed", of: (entry) => entry.exposed, as: as.seconds },
  { name: "accuracy", of: (entry) => entry.accuracy, as: as.percent },
  { name: "final loss", of: (entry) => entry.loss, as: as.loss },
  { name: "steps", of: (entry) => entry.steps, as: as.count },
  { name: "sent per step", of: (entry) => entry.bytes, as: as.bytes },
];

function figures(model) {
  const columns = COLUMNS.filter(
    (column) => (column.if?.(model) ?? true) && model.entries.some((entry) => column.of(entry) !== null),
  );
  const row = (entry, place) => ({
    class: entry.failed ? "failed" : null,
    cells: [
      `${entry.failed ? "\u2007–" : String(place + 1).padStart(2, "\u2007")}\u2002${entry.name}`,
      ...columns.map((column) => figure(column.of(entry), column.as(column.of(entry)))),
    ],
  });
  return table({
    open: true,
    caption: "All figures, the best first",
    columns: [{ name: "contender" }, ...columns],
    rows: model.ranked.map(row),
  });
}

export function ranking(model) {
  const best = model.finished[0];
  const against =
    model.measured && model.baseline
      ? `; × is the speed-up over ${model.baseline.name}`
      : "; × is the speed-up over one worker";
  const caption = `Shorter is better: ${scoreName(model)}${against}.`;
  const label = best ? `Bars of ${scoreName(model)}; the best is ${best.name}.` : "No contender finished.";
  return section(
    "ranking",
    "Ranking",
    chart({ draw: (width) => draw(model, width), label, caption, beside: figures(model) }),
    failures(model),
  );
}

export function failures(model) {
  const failed = model.ranked.filter((entry) => entry.failed);
  if (failed.length === 0) return null;
  return table({
    open: true,
    caption: "What failed, and how it said so",
    columns: [{ name: "contender" }, { name: "reason", text: true }],
    rows: failed.map((entry) => ({ cells: [entry.name, entry.failed] })),
  });
}
