// A sweep: speed-up, efficiency and the time of a step over worker counts.
import { figure } from "../dom.js";
import { chart, section, table } from "../figure.js";
import * as as from "../format.js";
import { curveKey, drawCurves } from "./curves.js";

const VIEWS = [
  {
    id: "speedup",
    title: "Speed-up",
    field: "speedup",
    show: as.times,
    yLog: true,
    caption: "How many times as fast as one worker; workers on a logarithmic scale.",
  },
  {
    id: "efficiency",
    title: "Efficiency",
    field: "efficiency",
    show: (value) => as.percent(value, 0),
    yRange: [0, 1],
    yFormat: (value) => as.percent(value, 0),
    caption: "Speed-up divided by the number of workers.",
  },
  {
    id: "seconds",
    title: "Seconds per step",
    field: "seconds_per_step",
    show: as.seconds,
    yLog: true,
    yFormat: as.seconds,
    caption: "The predicted time of a step.",
  },
];

function view(model, { id, title, field, show, caption, ...look }) {
  const counts = [
    ...new Set(model.entries.flatMap((entry) => entry.points.map((point) => point.workers))),
  ].sort((a, b) => a - b);
  const series = model.ranked
    .map((entry) => ({
      place: entry.place,
      name: entry.name,
      points: entry.points.map((point) => ({ x: point.workers, y: point[field] })),
    }))
    .filter((each) => each.points.length > 0);
  const row = (entry) => ({
    cells: [
      entry.name,
      ...counts.map((workers) => {
        const value = entry.points.find((point) => point.workers === workers)?.[field];
        return value === undefined ? "–" : figure(value, show(value));
      }),
    ],
  });
  const options = {
    xName: "workers",
    yName: title.toLowerCase(),
    xLog: counts.length > 1,
    xFormat: as.count,
    dots: true,
    ...look,
  };
  return section(
    id,
    title,
    chart({
      draw: (width) =>
        drawCurves(series, width, {
          ...options,
          xValues: counts.filter((_, i) => i % Math.ceil(counts.length / Math.max(2, width / 70)) === 0),
        }),
      label: `Lines of ${title.toLowerCase()} against workers, one for each of ${series.length} strategies.`,
      caption,
      legend: curveKey(series),
      beside: table({
        open: id === "speedup",
        caption: `${title.toLowerCase()} by number of workers`,
        columns: [{ name: "strategy" }, ...counts.map((workers) => ({ name: as.count(workers) }))],
        rows: model.ranked.map(row),
      }),
    }),
  );
}

export const scaling = (model) => VIEWS.map((each) => view(model, each));
