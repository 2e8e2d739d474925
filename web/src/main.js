// Reads the data that the program put into the page, and shows what there is to show.
import { apart, outcome } from "./charts/convergence.js";
import { groups } from "./charts/groups.js";
import { prediction } from "./charts/prediction.js";
import { ranking } from "./charts/ranking.js";
import { scaling } from "./charts/scaling.js";
import { step } from "./charts/step.js";
import { timelines } from "./charts/timeline.js";
import { training } from "./charts/training.js";
import { h } from "./dom.js";
import { modelOf } from "./model.js";
import { contents, header, reasons, repeat, ways } from "./words.js";

const SECTIONS = {
  race: [ranking, training, step, prediction, timelines, groups, ways, repeat],
  simulation: [ranking, step, timelines, groups, repeat],
  plan: [ranking, reasons, step, timelines, groups, repeat],
  sweep: [scaling, repeat],
  convergence: [outcome, training, apart, repeat],
};

const model = modelOf(JSON.parse(document.getElementById("data").textContent));
document.title = `Riffle ${model.title.toLowerCase()}: ${model.trace ?? model.task ?? ""} on ${model.cluster ?? `${model.workers} workers`}`;
const sections = SECTIONS[model.kind].flatMap((make) => make(model)).filter(Boolean);
document.body.append(
  h("a", { class: "skip", href: `#${sections[0]?.id}` }, "Skip to the figures"),
  header(model),
  contents(sections),
  h("main", null, sections),
  h("footer", null, "Written by Riffle. Everything is in this file; it loads nothing."),
);
