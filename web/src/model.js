// The data of any verb in one shape, so that sections need not know where it came from. Every field but
// `contender` may be null or absent.
const KINDS = {
  race: { title: "Race", measured: true },
  simulation: { title: "Simulation", measured: false },
  plan: { title: "Plan", measured: false },
  sweep: { title: "Sweep", measured: false },
  convergence: { title: "Convergence", measured: false },
};

const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);
const list = (value) => (Array.isArray(value) ? value : []);
const text = (value) => (typeof value === "string" && value !== "" ? value : null);

const known = (point) => point.x !== null && point.y !== null;

// By seconds; by steps where their time is not known.
function curveOf(curve, values) {
  const clock = list(curve?.seconds ?? curve?.step);
  return clock.map((x, i) => ({ x: number(x), y: number(list(values)[i]) })).filter(known);
}

function evaluationsOf(evaluations) {
  return list(evaluations)
    .map(({ step, seconds, accuracy }) => ({ step, x: number(seconds ?? step), y: number(accuracy) }))
    .filter(known);
}

function entryOf(result, index) {
  return {
    index,
    name: String(result.contender),
    rank: number(result.rank),
    failed: text(result.failed),
    how: text(result.how),
    reason: text(result.reason),
    step: number(result.seconds_per_step),
    effective: number(result.seconds_per_effective_step),
    compute: number(result.compute_seconds),
    exposed: number(result.exposed_communication_seconds),
    hidden: number(result.hidden_communication_seconds),
    predicted: number(result.predicted_seconds_per_step),
    predictedParts: result.predicted ?? null,
    loss: number(result.final_loss),
    accuracy: number(result.accuracy),
    toTarget: number(result.seconds_to_target),
    speedup: number(result.speedup),
    efficiency: number(result.efficiency),
    bytes: number(result.bytes_per_worker),
    steps: number(result.steps),
    curve: curveOf(result.curve, result.curve?.loss),
    apart: curveOf(result.curve, result.curve?.consensus_distance),
    theory: result.theory ?? null,
    evaluations: evaluationsOf(result.evaluations),
    groups: list(result.groups),
    timeline: list(result.timeline?.events).length > 0 ? result.timeline : null,
    timelineFile: text(result.timeline_file),
    points: list(result.points),
  };
}

export function modelOf(data) {
  const kind = KINDS[data.riffle];
  const entries = list(data.results).map(entryOf);
  const target = number(data.target);
  // What contenders are ranked by: the time to the target where there is one, else that of a step. Last
  // losses of training differ by chance, so those stay as they were named.
  const ofStep = (entry) => entry.effective ?? entry.step ?? number(entry.points.at(-1)?.seconds_per_step);
  const ofKind = data.riffle === "convergence" ? () => null : ofStep;
  const score = target !== null ? (entry) => entry.toTarget : ofKind;
  const last = Number.MAX_VALUE;
  const order = (entry) => [entry.failed ? 1 : 0, entry.rank ?? last, score(entry) ?? last, entry.index];
  const ranked = [...entries].sort((a, b) => {
    const [left, right] = [order(a), order(b)];
    const differs = left.findIndex((value, i) => value !== right[i]);
    return differs < 0 ? 0 : left[differs] - right[differs];
  });
  ranked.forEach((entry, place) => (entry.place = place));
  return {
    ...data,
    kind: data.riffle,
    title: kind.title,
    measured: kind.measured,
    target,
    score,
    clock: list(data.results).some(({ curve }) => curve && !curve.seconds) ? "steps" : "seconds",
    entries, // as they were named
    ranked, // the best first, what failed last
    finished: ranked.filter((entry) => !entry.failed),
    baseline: kind.measured ? entries[0] : null,
  };
}
