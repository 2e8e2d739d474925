// A chart with its caption and, a key press away, its figures as a table. Redrawn when its width changes.
import { h, s, unique } from "./dom.js";

export function table({ columns, rows, caption, open }) {
  const head = columns.map((column, i) =>
    h("th", { scope: "col", class: column.text || i === 0 ? null : "number" }, column.name),
  );
  const cell = (value, i) =>
    i === 0
      ? h("th", { scope: "row" }, value)
      : h("td", { class: columns[i].text ? null : "number" }, value ?? "–");
  const body = rows.map((row) => h("tr", { class: row.class }, row.cells.map(cell)));
  const scrolled = h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      null,
      h("caption", { class: open ? null : "unseen" }, caption),
      h("thead", null, h("tr", null, head)),
      h("tbody", null, body),
    ),
  );
  return open ? scrolled : h("details", null, h("summary", null, `Table: ${caption}`), scrolled);
}

// draw(width) gives {height, marks}: what is in the drawing, for a width in CSS pixels.
export function chart({ draw, label, caption, legend, beside }) {
  const id = unique("caption");
  const place = h("div", { class: "chart" });
  const element = h("figure", null, legend, place, h("figcaption", { id }, caption), beside);
  let drawn = 0;
  const redraw = () => {
    const width = Math.floor(place.clientWidth);
    if (width === drawn || width < 1) return;
    drawn = width;
    const { height, marks } = draw(width);
    const picture = {
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "img",
      "aria-label": label,
      "aria-describedby": id,
    };
    place.replaceChildren(s("svg", picture, marks));
  };
  new ResizeObserver(redraw).observe(place);
  return element;
}

export function section(id, title, ...content) {
  return h(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title` }, title),
    content,
  );
}

// A key: [{swatch: marks of a 24 x 12 drawing, name}].
export function key(items) {
  const item = ({ swatch, name }) =>
    h(
      "li",
      null,
      s("svg", { width: 24, height: 12, viewBox: "0 0 24 12", "aria-hidden": "true" }, swatch),
      name,
    );
  return h("ul", { class: "key" }, items.map(item));
}
