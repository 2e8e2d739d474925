// Rows of a bar chart, one per contender: its name and its figure above, marks below. Names of any length
// fit, on a phone as on paper.
import { scaleLinear } from "d3-scale";
import { bottomAxis } from "../axis.js";
import { s } from "../dom.js";
import * as as from "../format.js";
import { fitted } from "../look.js";

export const HEAD = 22; // of a row: the line of text

export function rows(entries, width, { top, body, gap = 16, value }, marks) {
  return entries.map((entry, i) => {
    const y = top + i * (HEAD + body + gap);
    const text = value(entry);
    const room = width - 8 * text.length - 16;
    return s(
      "g",
      { transform: `translate(0 ${y})` },
      s("text", { class: "name", x: 0, y: 15 }, fitted(entry.name, room), s("title", null, entry.name)),
      s("text", { class: "value", x: width, y: 15, "text-anchor": "end" }, text),
      marks(entry, HEAD),
    );
  });
}

export const heightOf = (count, { top, body, gap = 16 }) => top + count * (HEAD + body + gap);

// Rows over an axis of time from 0 to `most` seconds; marks get its scale.
export function timedRows(entries, width, { most, name, ...layout }, marks) {
  const bottom = heightOf(entries.length, layout);
  const x = scaleLinear([0, most], [0, width - 8]);
  const unit = as.timeUnit(most);
  const ticks = x.ticks(Math.max(2, Math.floor(width / 90))).slice(1);
  const values = ticks.filter((tick) => x(tick) < width - 24);
  const axis = {
    left: 0,
    right: width,
    top: 0,
    bottom,
    unit: unit.size,
    name: `${unit.unit} ${name}`,
    values,
  };
  return {
    height: bottom + 40,
    marks: [bottomAxis(x, axis), rows(entries, width, layout, (entry, y) => marks(entry, y, x))],
  };
}
