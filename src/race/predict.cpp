#include <algorithm>

#include "race/contender.h"
#include "riffle/error.h"
#include "riffle/simulate.h"

namespace riffle::race {
namespace {

Cluster with_latencies_twice(Cluster cluster) {
  for (WorkerSpec& worker : cluster.workers) worker.link.latency *= 2;
  for (Domain& domain : cluster.domains) domain.uplink.latency *= 2;
  for (PairLink& pair : cluster.pairs) pair.link.latency *= 2;
  return cluster;
}

World world_of(const Cluster& cluster) {
  return World(cluster);
}

}  // namespace

std::optional<Prediction> predict(const Contender& contender, const Trace& trace,
                                  const Cluster& cluster, const std::vector<Change>& events) {
  if (!contender.predicted_as) return std::nullopt;
  try {
    SimulateOptions options;
    options.changes = events;
    const Simulation found =
        simulate(trace, contender.asks_before_sending ? with_latencies_twice(cluster) : cluster,
                 *contender.predicted_as, options);
    return Prediction{found.iteration.count(), found.compute.count(),
                      found.exposed_communication.count()};
  } catch (const UsageError&) {
    return std::nullopt;  // events that only a lab has; the run itself will tell
  }
}

Traits traits_of(const Contender& contender, const Trace& trace, const Cluster& cluster) {
  if (!contender.strategy) return {};
  const World world = world_of(cluster);
  const NamedStrategy& strategy = *contender.strategy;
  return strategy->traits_with(world, strategy->buckets(trace, CostModel(cluster), world));
}

std::optional<std::vector<Groups>> groups_of(const Contender& contender, const Trace& trace,
                                             const Cluster& cluster) {
  if (!contender.strategy) return std::nullopt;
  constexpr int most_steps = 8;
  const World world = world_of(cluster);
  const NamedStrategy& strategy = *contender.strategy;
  const BucketPlan buckets = strategy->buckets(trace, CostModel(cluster), world);
  const Traits traits = strategy->traits_with(world, buckets);
  const int period = traits.period;
  std::vector<Groups> steps;
  for (Step step = 0; step < (period == 0 ? most_steps : std::min(period, most_steps)); ++step) {
    Groups& groups = steps.emplace_back();
    for (const Exchange& exchange :
         strategy->program(traits.warm_up + step, world, buckets).exchanges) {
      if (exchange.bucket != 0 || exchange.group.size() < 2) continue;
      if (std::ranges::find(groups, exchange.group.ranks()) == groups.end())
        groups.push_back(exchange.group.ranks());
    }
  }
  return steps;
}

}  // namespace riffle::race
