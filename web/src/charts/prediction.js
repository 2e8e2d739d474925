// Prediction against measurement: two marks on one line, and how far they are apart.
import { figure, s } from "../dom.js";
import { chart, key, section, table } from "../figure.js";
import * as as from "../format.js";
import { timedRows } from "./rows.js";

const LAYOUT = { top: 0, body: 14, gap: 12 };

const errorOf = (entry) => entry.predicted / entry.step - 1;
const measuredMark = (x, y) => s("circle", { class: "measured", cx: x, cy: y, r: 4 });
const predictedMark = (x, y) =>
  s("rect", {
    class: "predicted",
    x: x - 5.5,
    y: y - 5.5,
    width: 11,
    height: 11,
    transform: `rotate(45 ${x} ${y})`,
  });

function draw(entries, width) {
  const most = Math.max(...entries.flatMap((entry) => [entry.step, entry.predicted]));
  const value = (entry) => as.signed(errorOf(entry));
  return timedRows(entries, width, { ...LAYOUT, most, name: "per step", value }, (entry, top, x) => {
    const y = top + LAYOUT.body / 2;
    return [
      s("line", { class: "grid", x1: 0, x2: width, y1: y, y2: y }),
      s("line", { class: "between", x1: x(entry.predicted), x2: x(entry.step), y1: y, y2: y }),
      measuredMark(x(entry.step), y),
      predictedMark(x(entry.predicted), y),
    ];
  });
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export function prediction(model) {
  const entries = model.finished.filter(
    (entry) => entry.predicted !== null && entry.step !== null && entry.step > 0,
  );
  if (!model.measured || entries.length === 0) return null;
  const errors = entries.map((entry) => Math.abs(errorOf(entry)));
  const row = (entry) => ({
    cells: [
      entry.name,
      figure(entry.predicted, as.seconds(entry.predicted)),
      figure(entry.step, as.seconds(entry.step)),
      figure(errorOf(entry), as.signed(errorOf(entry))),
    ],
  });
  return section(
    "prediction",
    "Prediction against measurement",
    chart({
      draw: (width) => draw(entries, width),
      label: `Predicted and measured seconds per step of ${entries.length} contenders; the median error is ${as.percent(median(errors))}.`,
      caption: `What the simulator predicted for a step, before it ran, and what was measured: median error ${as.percent(median(errors))}, worst ${as.percent(Math.max(...errors))}.`,
      legend: key([
        { name: "measured", swatch: measuredMark(12, 6) },
        { name: "predicted", swatch: predictedMark(12, 6) },
      ]),
      beside: table({
        caption: "prediction and measurement",
        columns: ["contender", "predicted", "measured", "error"].map((name) => ({ name })),
        rows: entries.map(row),
      }),
    }),
  );
}
