// One step of each contender, worker by worker, all on one scale of time.
import { scaleLinear } from "d3-scale";
import { bottomAxis } from "../axis.js";
import { h, s } from "../dom.js";
import { chart, key, section, table } from "../figure.js";
import * as as from "../format.js";
import { fitted } from "../look.js";

const MOST_WORKERS = 4;
const COMPUTE = 16;
const LANE = 9;
const LABEL = 74;

const KINDS = ["forward", "backward", "optimizer", "wait"];
const kindOf = (event) =>
  event.lane === "compute"
    ? (KINDS.find((kind) => event.name.startsWith(kind)) ?? "backward")
    : event.lane.startsWith("link")
      ? "link"
      : "exchange";

// Workers that stand for all: spread over the ranks, so that every rack shows one.
function shownRanks(events) {
  const ranks = [
    ...new Set(events.filter((event) => kindOf(event) !== "link").map((event) => event.rank)),
  ].sort((a, b) => a - b);
  if (ranks.length <= MOST_WORKERS) return ranks;
  return Array.from({ length: MOST_WORKERS }, (_, i) => ranks[Math.floor((i * ranks.length) / MOST_WORKERS)]);
}

// What a worker does in a row is one mark: waits for one bucket after the other, say.
function merged(events, hair) {
  const result = [];
  for (const event of [...events].sort((a, b) => a.start - b.start)) {
    const last = result.at(-1);
    const follows =
      last && kindOf(last) === kindOf(event) && event.start - (last.start + last.seconds) < hair;
    if (follows)
      result[result.length - 1] = {
        ...last,
        name: kindOf(last),
        seconds: event.start + event.seconds - last.start,
      };
    else result.push(event);
  }
  return result;
}

// Rows from top to bottom: a worker's computing, its lanes, then links.
function rowsOf(timeline) {
  const rows = [];
  const { events, seconds } = timeline;
  const add = (label, height, its) => rows.push({ label, height, events: its });
  for (const rank of shownRanks(events)) {
    const own = events.filter((event) => event.rank === rank && kindOf(event) !== "link");
    const of = (lane) => own.filter((event) => event.lane === lane);
    add(`worker ${rank}`, COMPUTE, merged(of("compute"), seconds / 500));
    const lanes = new Set(own.map((event) => event.lane));
    [...lanes]
      .filter((lane) => lane !== "compute")
      .sort()
      .forEach((lane) => add("", LANE, of(lane)));
  }
  const links = events.filter((event) => kindOf(event) === "link");
  for (const lane of new Set(links.map((event) => event.lane)))
    add(
      lane,
      LANE + 3,
      links.filter((event) => event.lane === lane),
    );
  let y = 4;
  for (const row of rows) {
    if (row.label !== "" && row !== rows[0]) y += 8;
    row.y = y;
    y += row.height + 1;
  }
  return { rows, bottom: y + 3 };
}

function mark(event, i, row, x) {
  const kind = kindOf(event);
  const left = x(event.start);
  const width = Math.max(0.6, x(event.start + event.seconds) - left);
  // The same bucket has one shade on all workers.
  const number = Number(event.name.match(/\d+/)?.[0] ?? i);
  const odd = kind === "exchange" && number % 2 === 1 ? " odd" : "";
  const title = `${event.name}, ${as.seconds(event.seconds)} from ${as.seconds(event.start)}`;
  const name = row.height === COMPUTE && kind !== "wait" && width > event.name.length * 7 + 8;
  return s(
    "g",
    { class: `event ${kind}${odd}` },
    s("title", null, title),
    s("rect", { x: left, y: row.y, width, height: row.height }),
    name && s("text", { x: left + width / 2, y: row.y + 12, "text-anchor": "middle" }, event.name),
  );
}

function draw(timeline, longest, width) {
  const { rows, bottom } = rowsOf(timeline);
  const x = scaleLinear([0, longest], [LABEL, width - 16]);
  const unit = as.timeUnit(longest);
  return {
    height: bottom + 38,
    marks: [
      bottomAxis(x, { left: LABEL, right: width - 16, top: 0, bottom, unit: unit.size, name: unit.unit }),
      rows.map((row) => [
        row.label &&
          s(
            "text",
            { class: "tick", x: 0, y: row.y + Math.min(row.height, COMPUTE) - 4 },
            fitted(row.label, LABEL, 12),
          ),
        row.events.map((event, i) => mark(event, i, row, x)),
      ]),
      s("line", { class: "level", x1: x(timeline.seconds), x2: x(timeline.seconds), y1: 0, y2: bottom }),
    ],
  };
}

// How long each worker spends on what, for those who read and do not look.
function sums(timeline) {
  const columns = ["forward", "backward", "optimizer", "wait", "exchange"];
  const rows = shownRanks(timeline.events).map((rank) => {
    const own = timeline.events.filter((event) => event.rank === rank);
    const sum = (kind) =>
      own.filter((event) => kindOf(event) === kind).reduce((all, event) => all + event.seconds, 0);
    return { cells: [`worker ${rank}`, ...columns.map((kind) => as.seconds(sum(kind)))] };
  });
  return { columns: [{ name: "worker" }, ...columns.map((name) => ({ name }))], rows };
}

const legend = (entries) => {
  const present = new Set(entries.flatMap((entry) => entry.timeline.events.map(kindOf)));
  return key(
    [...KINDS, "exchange", "link"]
      .filter((kind) => present.has(kind))
      .map((kind) => ({
        name: { wait: "waits", exchange: "exchanges, shades in turns", link: "a link is busy" }[kind] ?? kind,
        swatch: s("g", { class: `event ${kind}` }, s("rect", { x: 0.5, y: 0.5, width: 23, height: 11 })),
      })),
  );
};

export function timelines(model) {
  const entries = model.finished.filter((entry) => entry.timeline);
  if (entries.length === 0) return null;
  const longest = Math.max(...entries.map((entry) => entry.timeline.seconds));
  const one = (entry) => {
    const workers = new Set(entry.timeline.events.map((event) => event.rank)).size;
    const shown = shownRanks(entry.timeline.events).length;
    const some = shown < workers ? ` ${shown} of its ${workers} workers.` : "";
    const file = entry.timelineFile
      ? [" All of it for Perfetto: ", h("code", null, entry.timelineFile), "."]
      : null;
    return h(
      "div",
      { class: "one" },
      h("h3", null, entry.name),
      chart({
        draw: (width) => draw(entry.timeline, longest, width),
        label: `What the workers of ${entry.name} did during one step of ${as.seconds(entry.timeline.seconds)}.`,
        caption: [`The step took ${as.seconds(entry.timeline.seconds)}.${some}`, file],
        beside: table({ caption: `seconds of this step of ${entry.name}`, ...sums(entry.timeline) }),
      }),
    );
  };
  const which = model.measured ? null : " Of steps that differ, the one that communicates most is shown.";
  return section(
    "timelines",
    "One step of each",
    h("p", null, "All on the same scale of time; a dashed line is the end of the step.", which),
    legend(entries),
    entries.map(one),
  );
}
