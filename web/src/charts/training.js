// Loss and accuracy against seconds, or steps where their time is not known.
import { figure } from "../dom.js";
import { chart, section, table } from "../figure.js";
import * as as from "../format.js";
import { curveKey, drawCurves, fivePoints, spreadsFar } from "./curves.js";

const MOST_POINTS = 600; // more than a screen has columns

// The mean over a window around each point; what was measured stays behind it, faint.
function smoothed(points, half) {
  return points.map((point, i) => {
    const window = points.slice(Math.max(0, i - half), i + half + 1);
    return { x: point.x, y: window.reduce((sum, each) => sum + each.y, 0) / window.length };
  });
}

const thinned = (points) => {
  const every = Math.ceil(points.length / MOST_POINTS);
  return points.filter((_, i) => i % every === 0 || i === points.length - 1);
};

function lossSeries(model) {
  return model.finished
    .filter((entry) => entry.curve.length > 1)
    .map((entry) => {
      const half = Math.floor(entry.curve.length / 40);
      const points = thinned(smoothed(entry.curve, half));
      return { place: entry.place, name: entry.name, points, faint: half > 0 ? thinned(entry.curve) : null };
    });
}

function lossChart(model, series) {
  const yLog = spreadsFar(series);
  const clock = model.clock === "seconds" ? "seconds of the true cluster" : model.clock;
  const caption = `Training loss against ${clock}${yLog ? ", on a logarithmic scale" : ""}. ${series.some((each) => each.faint) ? "Each line is a mean over a twentieth of the run; what each step measured is faint behind it." : ""}`;
  return chart({
    draw: (width) => drawCurves(series, width, { xName: model.clock, yName: "loss", yLog }),
    label: `Lines of training loss against ${model.clock}, one for each of ${series.length} contenders.`,
    caption,
    legend: curveKey(series),
    beside: fivePoints(
      model,
      "loss as measured",
      model.finished.filter((entry) => entry.curve.length > 1),
      (entry) => entry.curve,
    ),
  });
}

function accuracyChart(model, alone) {
  const series = model.finished
    .filter((entry) => entry.evaluations.length > 1)
    .map((entry) => ({ place: entry.place, name: entry.name, points: entry.evaluations }));
  if (series.length === 0) return null;
  const all = series.flatMap((each) => each.points.map((point) => point.y));
  const low = Math.max(0, Math.min(...all, model.target ?? 1) - 0.02);
  const high = Math.max(...all, model.target ?? 0);
  const yRange = [low, high + (high - low) * 0.1]; // room for the target's name
  const level =
    model.target === null ? null : { value: model.target, name: `target ${as.percent(model.target, 0)}` };
  const at = model.clock === "seconds" ? as.seconds : as.count;
  const rows = series.map((each) => {
    const last = each.points.at(-1);
    const best = each.points.reduce((a, b) => (b.y > a.y ? b : a));
    return {
      cells: [
        each.name,
        figure(best.y, as.percent(best.y)),
        at(best.x),
        figure(last.y, as.percent(last.y)),
        at(last.x),
        as.count(each.points.length),
      ],
    };
  });
  return chart({
    draw: (width) =>
      drawCurves(series, width, {
        xName: model.clock,
        yName: "accuracy",
        yRange,
        level,
        dots: true,
        yMost: 1,
        yFormat: (value) => as.percent(value, 0),
      }),
    label: `Lines of accuracy against ${model.clock}, one for each of ${series.length} contenders.`,
    caption: `Accuracy on held-out data each time it was evaluated${model.measured ? "; the clock stands still meanwhile" : ""}.`,
    legend: alone && curveKey(series),
    beside: table({
      caption: "best and last accuracy",
      columns: [
        { name: "contender" },
        { name: "best" },
        { name: "at" },
        { name: "last" },
        { name: "at" },
        { name: "evaluations" },
      ],
      rows,
    }),
  });
}

export function training(model) {
  const series = lossSeries(model);
  const accuracy = accuracyChart(model, series.length === 0);
  if (series.length === 0 && accuracy === null) return null;
  return section("training", `Loss against ${model.clock}`, series.length > 0 && lossChart(model, series), accuracy);
}
