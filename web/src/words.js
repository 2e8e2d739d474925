// What stands around the charts: the headline, the facts, how it was run, how to repeat it.
import { scoreName } from "./charts/ranking.js";
import { figure, h } from "./dom.js";
import { section } from "./figure.js";
import * as as from "./format.js";

function lossRange(model) {
  const losses = model.finished.map((entry) => entry.loss).filter((loss) => loss !== null);
  if (losses.length === 0) return "No training came to an end";
  const [least, most] = [Math.min(...losses), Math.max(...losses)];
  const who = losses.length === 1 ? model.finished[0].name : `${losses.length} strategies`;
  const end = figure(least, as.loss(least));
  return [who, " ended at a loss of ", end, most > least ? [" to ", figure(most, as.loss(most))] : null];
}

function headline(model) {
  const [best] = model.finished;
  if (model.kind === "sweep")
    return `${model.entries.length} strategies on up to ${as.count(model.workers)} workers`;
  if (model.kind === "convergence") return lossRange(model);
  if (!best || model.score(best) === null)
    return model.target === null
      ? "Nobody finished"
      : `Nobody reached ${as.percent(model.target, 0)} accuracy`;
  const base = model.baseline;
  const score = figure(model.score(best), as.seconds(model.score(best)));
  const what = model.target === null ? " a step" : ` to ${as.percent(model.target, 0)} accuracy`;
  const compared =
    base && base !== best && !base.failed && best.speedup !== null
      ? [": ", figure(best.speedup, as.times(best.speedup)), ` the speed of ${base.name}`]
      : null;
  return [h("strong", null, best.name), model.measured ? " took " : " takes ", score, what, compared];
}

const FACTS = [
  ["model", (model) => model.trace],
  ["task", (model) => model.task],
  ["workers", (model) => (model.workers ? as.count(model.workers) : null)],
  ["seed", (model) => (model.seed === undefined || model.seed === null ? null : String(model.seed))],
  ["ranked by", (model) => (["sweep", "convergence"].includes(model.kind) ? null : scoreName(model))],
  ["cluster", (model) => model.cluster],
  [
    "stretched in time",
    (model) =>
      model.dilate > 1
        ? `${as.count(model.dilate)}-fold while it ran; times here are the true cluster's`
        : null,
  ],
  [
    "shrunk in size",
    (model) => (model.shrink > 1 ? `${as.count(model.shrink)}-fold, messages and links alike` : null),
  ],
];

export function header(model) {
  const facts = FACTS.map(([name, of]) => [name, of(model)]).filter(
    ([, value]) => value !== null && value !== undefined && value !== "",
  );
  return h(
    "header",
    null,
    h("p", { class: "kind" }, `Riffle · ${model.title}`),
    h("h1", null, headline(model)),
    model.limit && h("p", null, `What limits it: ${model.limit}.`),
    model.interrupted === true &&
      h(
        "p",
        { class: "warning", role: "note" },
        "This race was interrupted; what had been measured by then is shown.",
      ),
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, value]) =>
        h("div", { class: value.length > 30 ? "wide" : null }, h("dt", null, name), h("dd", null, value)),
      ),
    ),
  );
}

export function contents(sections) {
  const item = (each) => h("li", null, h("a", { href: `#${each.id}` }, each.querySelector("h2").textContent));
  return h("nav", { "aria-label": "Sections" }, h("ul", null, sections.map(item)));
}

// Contenders of whom the same is said share a line.
function described(id, title, entries, said) {
  const names = new Map();
  for (const entry of entries.filter(said))
    names.set(said(entry), [...(names.get(said(entry)) ?? []), entry.name]);
  const line = ([text, of]) => h("div", null, h("dt", null, of.join(", ")), h("dd", null, text));
  return names.size > 0 ? section(id, title, h("dl", { class: "ways" }, [...names].map(line))) : null;
}

export const ways = (model) => described("ways", "How each was run", model.ranked, (entry) => entry.how);
export const reasons = (model) => described("reasons", "Why", model.ranked, (entry) => entry.reason);

function copyButton(text) {
  const button = h("button", { type: "button" }, "Copy");
  const said = h("span", { role: "status", class: "said" });
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      said.textContent = "copied";
    } catch {
      said.textContent = "this browser does not let a file copy; select the line instead";
    }
  });
  return [button, said];
}

export function repeat(model) {
  if (!model.command) return null;
  return section(
    "repeat",
    "Repeat it",
    h("pre", { tabindex: 0, "aria-label": "command" }, h("code", { id: "command" }, model.command)),
    h("p", { class: "copy" }, copyButton(model.command)),
  );
}
