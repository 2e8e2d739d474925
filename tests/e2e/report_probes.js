// What tests ask of the page of charts; evaluated in it after it is drawn.
var all = (query) => [...document.querySelectorAll(query)];

var probes = {
  sections: () =>
    all("section")
      .map((section) => section.id)
      .join(" "),
  marks: () => all(".chart").map((chart) => chart.querySelectorAll("svg *").length),
  lost: () => all("svg *").filter((mark) => /NaN|undefined|Infinity/.test(mark.outerHTML)).length,
  // The cells of a section's first table: [text, value of the figure in it], the head first.
  table: (section) =>
    [...document.querySelector(`#${section} table`).rows].map((row) =>
      [...row.cells].map((cell) => [cell.textContent, cell.querySelector("data")?.value ?? null]),
    ),
  bars: () => all("#ranking .bar").map((bar) => bar.width.baseVal.value),
  command: () => document.getElementById("command").textContent,
  foreign: () => all("img, iframe, object, embed, link").length,
  scripts: () => all("script").length,

  outside: () =>
    all(".chart svg text")
      .filter((text) => {
        const { x, width } = text.getBBox();
        return x < -1 || x + width > text.ownerSVGElement.clientWidth + 1;
      })
      .map((text) => text.textContent),
  unnamed: () =>
    all("svg").filter((svg) => !svg.getAttribute("aria-label") && svg.getAttribute("aria-hidden") !== "true")
      .length,
  // Bars of the ranking have their table beside them, other charts below; pictures of groups share one.
  uncaptioned: () =>
    all("figure").filter((figure) => !figure.querySelector("figcaption")?.textContent).length,
  untabled: () => all("figure:not(.map)").filter((figure) => !figure.querySelector("table")).length,
  headings: () => all("h1, h2, h3").map((heading) => Number(heading.tagName[1])),
  repeatedIds: () => all("[id]").length - new Set(all("[id]").map((element) => element.id)).size,
  deadLinks: () => all("a").filter((link) => !document.querySelector(link.getAttribute("href"))).length,
  reachable: () =>
    all("*")
      .map((element, i) =>
        element.matches("a, button, summary, [tabindex]") && element.checkVisibility() ? i : -1,
      )
      .filter((i) => i >= 0),
  reached: () => (document.activeElement === document.body ? null : all("*").indexOf(document.activeElement)),
  shown: (query) => all(query).filter((element) => element.checkVisibility()).length,

  // Text and its contrast to what it stands on: [words, ratio].
  contrasts: () => {
    const parse = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
    const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const light = ([r, g, b]) =>
      0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
    const ground = (element) => {
      const colour = parse(getComputedStyle(element).backgroundColor);
      const opaque = colour.length === 3 || colour[3] > 0;
      return opaque || !element.parentElement ? colour : ground(element.parentElement);
    };
    const onMark = (text) => text.matches(".event text, .worker:not(.alone) + .letter");
    const behind = (text) =>
      onMark(text) ? parse(getComputedStyle(text.previousElementSibling).fill) : ground(text);
    const hasWords = (element) =>
      [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    const seen = all("body *").filter(
      (element) => hasWords(element) && element.checkVisibility() && !element.matches("script, title"),
    );
    return seen.map((element) => {
      const style = getComputedStyle(element);
      const own = light(parse(element instanceof SVGElement ? style.fill : style.color));
      const other = light(behind(element));
      return [element.textContent, (Math.max(own, other) + 0.05) / (Math.min(own, other) + 0.05)];
    });
  },
};
