// One simulation: warm up, measure whole periods, say what was seen.
#include "riffle/simulate.h"

#include <algorithm>
#include <cmath>

#include "simulate/replan.h"
#include "simulate/result.h"

namespace riffle {
namespace {

using simulator::Simulator;

constexpr Step kStepsWithoutPeriod = 32;
constexpr Step kWorkerSteps = 2048;  // that make a mean over random steps worth printing
constexpr int kMostPeriods = 64;
constexpr double kSteady = 1e-11;

struct Window {
  Step from = 0;
  Step to = 0;
};

Step whole_periods(Step steps, Step period) {
  return (steps + period - 1) / period * period;
}

bool random(const Cluster& cluster) {
  return cluster.jitter > 0 || cluster.straggle.probability > 0;
}

// Where workers may be ahead of each other, the steps until the fast have come to the bound: as
// many as the slowest takes to fall so far behind, twice over because not all of a step is
// computing.
Step until_bound(const Traits& traits, const Cluster& cluster) {
  constexpr double kMost = 512;
  if (!traits.timed) return 0;
  const auto slow = std::ranges::minmax(cluster.workers, {}, &WorkerSpec::slow);
  const double behind = slow.max.slow / slow.min.slow - 1;
  if (behind <= 0) return 0;
  return static_cast<Step>(std::min(kMost, std::ceil(2 * traits.staleness / behind)));
}

// Runs period after period until two in a row took equally long. Where they never do (a cycle of
// several periods), the second half is the mean that is taken.
Window until_steady(Simulator& simulator, Step first, Step period) {
  double before = -1;
  for (Step end = first + period;; end += period) {
    simulator.run_until(end);
    const double took = simulator.mean_begin(end) - simulator.mean_begin(end - period);
    if (std::abs(took - before) <= kSteady * took) return {end - period, end};
    if (end >= first + kMostPeriods * period)
      return {whole_periods((first + end) / 2, period), end};
    before = took;
  }
}

Window run(Simulator& simulator, const Cluster& cluster, const SimulateOptions& options) {
  const Traits& traits = simulator.traits();
  const Step period = traits.period > 0 ? traits.period : traits.round;
  // Delayed exchanges reach their first merge, and those of the next round are under way.
  const bool carries = traits.staleness > 0 || period > 1;
  const Step turn = traits.rotation > 0 ? traits.rotation : period;
  Step warmup =
      carries ? whole_periods(2 * traits.staleness + 1, random(cluster) ? period : turn) : 0;
  warmup += until_bound(traits, cluster);
  if (!options.changes.empty()) warmup = 0;
  if (options.warmup >= 0) warmup = whole_periods(options.warmup, period);
  Step steps = options.steps;
  if (steps == 0 && (traits.period == 0 || !options.changes.empty())) steps = kStepsWithoutPeriod;
  if (steps == 0 && random(cluster)) steps = (kWorkerSteps + cluster.size() - 1) / cluster.size();
  if (options.timeline != nullptr)
    simulator.record().keep(*options.timeline, options.timeline_workers, warmup);
  // Where only names change from rotation to rotation, one of them tells as much as a period.
  if (steps == 0) return until_steady(simulator, warmup, turn);
  const Window window{warmup, warmup + whole_periods(steps, period)};
  simulator.run_until(window.to);
  return window;
}

}  // namespace

Simulation simulate(const Trace& trace, const Cluster& cluster, const NamedStrategy& strategy,
                    const SimulateOptions& options) {
  if (options.replan) return simulator::simulate_replanning(trace, cluster, strategy, options);
  Simulator simulator({.trace = trace,
                       .cluster = cluster,
                       .planned = options.planned ? *options.planned : cluster,
                       .strategy = *strategy.strategy,
                       .seed = options.seed,
                       .changes = options.changes});
  const Window window = run(simulator, cluster, options);
  simulator::Totals totals;
  totals.add(simulator, window.from, window.to);
  Simulation result = simulator::result_of(trace, cluster, strategy, totals);
  result.buckets = simulator::last_buckets(simulator, trace, window.to);
  return result;
}

}  // namespace riffle
