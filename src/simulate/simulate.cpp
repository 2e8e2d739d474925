// One simulation: warm up, measure whole periods, say what was seen.
#include "riffle/simulate.h"

#include <algorithm>
#include <cmath>

#include "simulate/simulator.h"

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
  const Step period = std::max(traits.period, 1);
  // Delayed exchanges reach their first merge, and those of the next round are under way.
  const bool carries = traits.staleness > 0 || period > 1;
  const Step turn = traits.rotation > 0 ? traits.rotation : period;
  Step warmup =
      carries ? whole_periods(2 * traits.staleness + 1, random(cluster) ? period : turn) : 0;
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

// The last step all of whose exchanges worker 0 has seen the end of, and that has any.
std::vector<SimulatedBucket> last_buckets(const Simulator& simulator, const Trace& trace,
                                          Step before) {
  std::vector<SimulatedBucket> shown;
  for (auto step = simulator.record().seen().rbegin(); step != simulator.record().seen().rend();
       ++step) {
    const auto& exchanges = step->second.exchanges;
    const bool whole = std::ranges::all_of(exchanges, [](const auto& e) { return e.end >= 0; });
    if (step->first >= before || exchanges.empty() || !whole) continue;
    for (const simulator::SeenExchange& seen : exchanges) {
      const simulator::PlannedExchange& planned = step->second.plan->exchanges[seen.exchange];
      const Bucket& bucket = simulator.buckets()[planned.exchange.bucket];
      SimulatedBucket entry{{},
                            planned.size,
                            Seconds(seen.start - step->second.begin),
                            Seconds(seen.end - step->second.begin)};
      for (int layer = bucket.first; layer <= bucket.last; ++layer)
        entry.layers.push_back(trace.layers[layer].name);
      shown.push_back(std::move(entry));
    }
    break;
  }
  return shown;
}

}  // namespace

Simulation simulate(const Trace& trace, const Cluster& cluster, const NamedStrategy& strategy,
                    const SimulateOptions& options) {
  Simulator simulator(trace, cluster, *strategy.strategy, options.seed, options.changes);
  const Window window = run(simulator, cluster, options);
  const auto steps = static_cast<double>(window.to - window.from);

  Simulation result;
  result.strategy = strategy.name;
  result.options = strategy.options;
  result.workers = cluster.size();
  result.iteration =
      Seconds(simulator.mean_begin(window.to) - simulator.mean_begin(window.from)) / steps;
  result.compute =
      trace.forward() + trace.backward() +
      (cluster.optimizer_step.count() > 0 ? cluster.optimizer_step : trace.optimizer_step);
  result.exposed_communication = result.iteration - result.compute;
  // What rounding leaves is no communication.
  if (std::abs(result.exposed_communication / result.iteration) < 1e-12)
    result.exposed_communication = Seconds{};
  result.speedup = result.workers * (result.compute / result.iteration);
  result.efficiency = result.speedup / result.workers;
  const double shares = steps * result.workers;
  result.bytes_per_worker = simulator.bytes(window.from, window.to) / shares;
  result.messages_per_worker = simulator.messages(window.from, window.to) / shares;
  result.buckets = last_buckets(simulator, trace, window.to);
  result.events = simulator.events();
  result.rate_changes = simulator.rate_changes();
  return result;
}

}  // namespace riffle
