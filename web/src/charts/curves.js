// Lines over seconds or workers, one per contender, told apart by colour and dash.
import { scaleLinear, scaleLog } from "d3-scale";
import { curveStepAfter, line } from "d3-shape";
import { bottomAxis, leftAxis, logTicks } from "../axis.js";
import { figure, h, s } from "../dom.js";
import { key, table } from "../figure.js";
import * as as from "../format.js";
import { lineOf, lineSwatch } from "../look.js";

const MARGIN = { left: 52, right: 12, top: 30, bottom: 44 };

const extent = (series, pick) => {
  const values = series.flatMap((each) => each.points.map(pick));
  return [Math.min(...values), Math.max(...values)];
};

function padded([low, high]) {
  const room = (high - low || Math.abs(high) || 1) * 0.05;
  return [low - room, high + room];
}

// series: [{place, name, points: [{x, y}], faint: [{x, y}]}]. options: xName, yName, xLog, yLog, xFormat, yFormat,
// yRange, yMost, level (a value to reach, with its name), steps (a value holds until the next).
export function drawCurves(series, width, options) {
  const height = Math.round(Math.min(380, Math.max(240, width * 0.5)));
  const box = {
    left: MARGIN.left,
    right: width - MARGIN.right,
    top: MARGIN.top,
    bottom: height - MARGIN.bottom,
  };
  const [x0, x1] = extent(series, (point) => point.x);
  const yExtent =
    options.yRange ??
    extent(
      series.map((each) => ({ points: [...each.points, ...(each.faint ?? [])] })),
      (point) => point.y,
    );
  // A logarithmic axis of less than a decade or so would have no round numbers to show.
  const yLog = options.yLog && yExtent[1] / yExtent[0] > 5;
  const x = options.xLog
    ? scaleLog([x0, x1], [box.left, box.right])
    : scaleLinear([Math.min(0, x0), x1 || 1], [box.left, box.right]);
  const up = [box.bottom, box.top];
  const y = yLog ? scaleLog(yExtent, up) : scaleLinear(options.yRange ?? padded(yExtent), up);
  const path = line(
    (point) => x(point.x),
    (point) => y(point.y),
  );
  if (options.steps) path.curve(curveStepAfter);
  const drawn = (points, look) => s("path", { ...look, d: path(points), fill: "none" });
  return {
    height,
    marks: [
      bottomAxis(x, {
        ...box,
        name: options.xName,
        format: options.xFormat,
        values: options.xLog && options.xValues,
      }),
      leftAxis(y, {
        ...box,
        name: options.yName,
        format: options.yFormat,
        most: options.yMost,
        values: yLog && logTicks(...yExtent, box.bottom - box.top),
      }),
      options.level && [
        s("line", {
          class: "level",
          x1: box.left,
          x2: box.right,
          y1: y(options.level.value),
          y2: y(options.level.value),
        }),
        s("text", { class: "tick", x: box.left + 6, y: y(options.level.value) - 6 }, options.level.name),
      ],
      series.map((each) => each.faint && drawn(each.faint, { class: `${lineOf(each.place).class} faint` })),
      // The best is drawn last, on top.
      [...series]
        .sort((a, b) => b.place - a.place)
        .map((each) => [
          drawn(each.points, lineOf(each.place)),
          (options.dots ? each.points : each.points.slice(-1)).map((point) =>
            s(
              "circle",
              { class: `dot ${lineOf(each.place).class}`, cx: x(point.x), cy: y(point.y), r: 3 },
              s("title", null, each.name),
            ),
          ),
        ]),
    ],
  };
}

// Whether values spread so far that a logarithmic scale shows them better.
export function spreadsFar(series) {
  const [low, high] = extent(
    series.flatMap((each) => [each, { points: each.faint ?? [] }]),
    (point) => point.y,
  );
  return low > 0 && high / low > 20;
}

// The figures behind such lines: of(entry), at five points of each run.
export function fivePoints(model, what, entries, of, show = as.loss) {
  const at = model.clock === "seconds" ? as.seconds : (step) => `step ${as.count(step)}`;
  const cell = (point) => [
    figure(point.y, show(point.y)),
    h("span", { class: "when" }, ` at ${at(point.x)}`),
  ];
  const shares = [0, 0.25, 0.5, 0.75, 1];
  const rows = entries.map((entry) => {
    const points = of(entry);
    return { cells: [entry.name, ...shares.map((share) => cell(points[Math.round(share * (points.length - 1))]))] };
  });
  const names = ["contender", "first step", "a quarter", "half", "three quarters", "last step"];
  return table({
    caption: `${what}, at five points of each run`,
    columns: names.map((name) => ({ name })),
    rows,
  });
}

export const curveKey = (series) =>
  key(series.map((each) => ({ swatch: lineSwatch(each.place), name: each.name })));
