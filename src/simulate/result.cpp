#include "simulate/result.h"

#include <algorithm>
#include <cmath>

namespace riffle::simulator {

void Totals::add(const Simulator& simulator, Step from, Step to) {
  seconds += simulator.mean_begin(to) - simulator.mean_begin(from);
  steps += static_cast<double>(to - from);
  bytes += simulator.bytes(from, to);
  messages += simulator.messages(from, to);
  events += simulator.events();
  rate_changes += simulator.rate_changes();
}

Simulation result_of(const Trace& trace, const Cluster& cluster, const NamedStrategy& strategy,
                     const Totals& totals) {
  Simulation result;
  result.strategy = strategy.name;
  result.options = strategy.options;
  result.workers = cluster.size();
  result.iteration = Seconds(totals.seconds) / totals.steps;
  result.compute =
      trace.forward() + trace.backward() +
      (cluster.optimizer_step.count() > 0 ? cluster.optimizer_step : trace.optimizer_step);
  result.exposed_communication = result.iteration - result.compute;
  // What rounding leaves is no communication.
  if (std::abs(result.exposed_communication / result.iteration) < 1e-12)
    result.exposed_communication = Seconds{};
  result.speedup = result.workers * (result.compute / result.iteration);
  result.efficiency = result.speedup / result.workers;
  const double shares = totals.steps * result.workers;
  result.bytes_per_worker = totals.bytes / shares;
  result.messages_per_worker = totals.messages / shares;
  result.events = totals.events;
  result.rate_changes = totals.rate_changes;
  return result;
}

std::vector<SimulatedBucket> last_buckets(const Simulator& simulator, const Trace& trace,
                                          Step before) {
  std::vector<SimulatedBucket> shown;
  for (auto step = simulator.record().seen().rbegin(); step != simulator.record().seen().rend();
       ++step) {
    const auto& exchanges = step->second.exchanges;
    const bool whole = std::ranges::all_of(exchanges, [](const auto& e) { return e.end >= 0; });
    if (step->first >= before || exchanges.empty() || !whole) continue;
    for (const SeenExchange& seen : exchanges) {
      const PlannedExchange& planned = step->second.plan->exchanges[seen.exchange];
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

}  // namespace riffle::simulator
