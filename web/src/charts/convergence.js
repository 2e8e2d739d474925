// Training of virtual workers: how each strategy ended, and how far its workers were apart.
import { figure } from "../dom.js";
import { chart, section, table } from "../figure.js";
import * as as from "../format.js";
import { curveKey, drawCurves, fivePoints } from "./curves.js";
import { failures } from "./ranking.js";

// Workers that are equal but for the rounding of their mean, and gains of nothing, are at zero.
const shown = (value) => (Math.abs(value) < 1e-9 ? "0" : as.loss(value));

// Columns that nobody has anything to say in are left out.
const COLUMNS = [
  { name: "final loss", of: (entry) => entry.loss, as: as.loss },
  { name: "accuracy", of: (entry) => entry.accuracy, as: as.percent },
  { name: "consensus distance", of: (entry) => entry.apart.at(-1)?.y ?? null, as: shown },
  { name: "steps", of: (entry) => entry.steps, as: as.count },
  { name: "step", of: (entry) => entry.step, as: as.seconds },
  {
    name: "in all",
    of: (entry) => (entry.step === null ? null : entry.step * entry.steps),
    as: as.seconds,
  },
  { name: "noise gain", of: (entry) => entry.theory?.noise_gain ?? null, as: shown },
  { name: "drift gain", of: (entry) => entry.theory?.drift_gain ?? null, as: shown },
  { name: "rate bound", of: (entry) => entry.theory?.rate_bound ?? null, as: as.loss },
];

export function outcome(model) {
  const columns = COLUMNS.filter((column) => model.finished.some((entry) => column.of(entry) !== null));
  const rows = model.finished.map((entry) => ({
    cells: [entry.name, ...columns.map((column) => figure(column.of(entry), column.as(column.of(entry))))],
  }));
  const caption = "The end of each run; gains and bound are theory's";
  return section(
    "outcome",
    "Outcome",
    rows.length > 0 && table({ open: true, caption, columns: [{ name: "strategy" }, ...columns], rows }),
    failures(model),
  );
}

export function apart(model) {
  const all = model.finished.filter((entry) => entry.apart.length > 1);
  if (all.length === 0) return null;
  const series = all.map(({ place, name, apart }) => ({ place, name, points: apart }));
  const most = Math.max(...series.flatMap(({ points }) => points.map((point) => point.y)));
  const options = { xName: model.clock, yName: "consensus distance", yRange: [0, most * 1.05 || 1] };
  return section(
    "apart",
    "How far apart",
    chart({
      draw: (width) => drawCurves(series, width, options),
      label: `Lines of consensus distance against ${model.clock}, one for each of ${series.length} strategies.`,
      caption: `How far workers are from their mean after a step's mixing, over the length of that mean, against ${model.clock}.`,
      legend: curveKey(series),
      beside: fivePoints(model, "consensus distance", all, (entry) => entry.apart, shown),
    }),
  );
}
