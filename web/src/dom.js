// Elements of HTML and SVG. Text only ever becomes text nodes, so no string of the data is markup.
const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

// A figure that the page shows as machines read it, too.
export const figure = (value, text) => (Number.isFinite(value) ? h("data", { value }, text) : "–");

let ids = 0;
export const unique = (prefix) => `${prefix}-${++ids}`;
