// What tells contenders and kinds of time apart: never colour alone. Colours are in style.css.
import { s, unique } from "./dom.js";

const DASHES = [null, "7 3", "2 3", "9 3 2 3", "12 4", "4 2", "1 4", "6 2 1 2 1 2"];
const COLOURS = 8;

// A contender's own line: colour and dash by its place in the ranking.
export const lineOf = (place) => ({
  class: `line c${place % COLOURS}`,
  "stroke-dasharray": DASHES[(place + Math.floor(place / COLOURS)) % DASHES.length],
});
export const colourOf = (place) => `c${place % COLOURS}`;

export const lineSwatch = (place) => s("line", { ...lineOf(place), x1: 0, x2: 24, y1: 6, y2: 6 });

// Diagonal lines for communication that hides behind computing. A pattern of its own for each drawing,
// because a reference must be found in the same document, wherever that ends up.
export function hatching() {
  const id = unique("hatch");
  const pattern = s(
    "pattern",
    { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    s("rect", { class: "hatch-ground", width: 6, height: 6 }),
    s("line", { class: "hatch-line", x1: 0, x2: 0, y1: 0, y2: 6 }),
  );
  return { defs: s("defs", null, pattern), fill: `url(#${id})` };
}

// Cut to what fits, by a rough width of a letter; the whole is in a table and in the tool tip.
export function fitted(text, width, size = 14) {
  const letters = Math.floor(width / (size * 0.56));
  return text.length <= letters ? text : `${text.slice(0, Math.max(1, letters - 1))}…`;
}
