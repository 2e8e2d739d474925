// Axes: grid lines, tick labels and a name with its unit.
import { s } from "./dom.js";
import { plain } from "./format.js";

// As many ticks as leave room for their labels.
const ticksFor = (scale, length, room) => scale.ticks(Math.max(2, Math.floor(length / room)));

export function bottomAxis(scale, { left, right, top, bottom, name, unit = 1, format = plain, values }) {
  const ticks = values || ticksFor(scale, right - left, 76);
  return [
    ticks.map((tick) => {
      const x = scale(tick);
      return [
        s("line", { class: "grid", x1: x, x2: x, y1: top, y2: bottom }),
        s("text", { class: "tick", x, y: bottom + 16, "text-anchor": "middle" }, format(tick / unit)),
      ];
    }),
    s("text", { class: "axis", x: right, y: bottom + 34, "text-anchor": "end" }, name),
  ];
}

export function leftAxis(scale, { left, right, top, bottom, name, format = plain, values, most = Infinity }) {
  const ticks = (values || ticksFor(scale, bottom - top, 44)).filter((tick) => tick <= most);
  return [
    ticks.map((tick) => {
      const y = scale(tick);
      return [
        s("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }),
        s("text", { class: "tick", x: left - 8, y: y + 4, "text-anchor": "end" }, format(tick)),
      ];
    }),
    s("text", { class: "axis", x: 0, y: top - 14 }, name),
  ];
}

// Numbers of a logarithmic axis: powers, and 2 and 5 between where powers are few.
export function logTicks(low, high, length) {
  const ticks = [];
  const fine = Math.log10(high / low) < 2.2 && length > 150;
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power) {
    for (const lead of fine ? [1, 2, 5] : [1]) {
      const tick = Number(`${lead}e${power}`);
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
    }
  }
  return ticks;
}
