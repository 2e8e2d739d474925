// Where a step's time goes: computing above; below it communication, hidden behind computing or exposed.
import { figure, s } from "../dom.js";
import { chart, key, section, table } from "../figure.js";
import * as as from "../format.js";
import { hatching } from "../look.js";
import { timedRows } from "./rows.js";

const LAYOUT = { top: 0, body: 22, gap: 14 };
const LINE = 11;

const parts = (entry) => (entry.compute ?? 0) + (entry.exposed ?? 0);
const whole = (entry) => entry.step ?? parts(entry);

function draw(entries, width) {
  const hatch = hatching();
  const most = Math.max(...entries.map((entry) => Math.max(whole(entry), parts(entry))));
  const layout = { ...LAYOUT, most, name: "of one step", value: (entry) => as.seconds(whole(entry)) };
  const drawn = timedRows(entries, width, layout, (entry, y, x) => {
    const compute = x(entry.compute ?? 0);
    const hidden = Math.min(x(entry.hidden ?? 0), compute);
    const exposed = Math.max(0, x(entry.exposed ?? 0));
    const below = { y: y + LINE, height: LINE };
    const [a, b, c] = [entry.compute, entry.hidden, entry.exposed].map(as.seconds);
    return s(
      "g",
      null,
      s("title", null, `${entry.name}: compute ${a}, hidden ${b}, exposed ${c}`),
      s("rect", { class: "compute", x: 0, y, width: compute, height: LINE }),
      hidden > 0 &&
        s("rect", { class: "hidden", fill: hatch.fill, x: compute - hidden, width: hidden, ...below }),
      s("rect", { class: "exposed", x: compute, width: exposed, ...below }),
    );
  });
  return { ...drawn, marks: [hatch.defs, drawn.marks] };
}

const legend = () => {
  const hatch = hatching();
  return key([
    { name: "compute", swatch: s("rect", { class: "compute", width: 24, height: 12 }) },
    {
      name: "communication hidden behind it",
      swatch: [hatch.defs, s("rect", { class: "hidden", fill: hatch.fill, width: 24, height: 12 })],
    },
    { name: "exposed communication", swatch: s("rect", { class: "exposed", width: 24, height: 12 }) },
  ]);
};

export function step(model) {
  const entries = model.finished.filter((entry) => entry.compute !== null || entry.exposed !== null);
  if (entries.length === 0) return null;
  const row = (entry) => ({
    cells: [
      entry.name,
      ...[entry.compute, entry.hidden, entry.exposed, entry.step].map((value) =>
        figure(value, as.seconds(value)),
      ),
    ],
  });
  const unknown = entries.some((entry) => entry.hidden === null)
    ? " Where nothing hatched is drawn, the library could not tell what it hid."
    : "";
  return section(
    "step",
    "Where a step's time goes",
    chart({
      draw: (width) => draw(entries, width),
      label: `For each of ${entries.length} contenders: seconds of a step spent computing, communicating behind computing, and waiting for communication.`,
      caption: `${model.measured ? "Measured" : "Predicted"} means per step. A step lasts as long as computing and exposed communication together.${unknown}`,
      legend: legend(),
      beside: table({
        caption: "seconds of a step",
        columns: ["contender", "compute", "hidden", "exposed", "step"].map((name) => ({ name })),
        rows: entries.map(row),
      }),
    }),
  );
}
