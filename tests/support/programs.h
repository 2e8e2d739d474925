// Short forms for tests of strategies.
#pragma once

#include <algorithm>
#include <set>
#include <string>

#include "riffle/strategy.h"

namespace riffle::test {

inline World flat(int workers) {
  return World(parse_cluster("flat:" + std::to_string(workers) + ",latency=50us,bandwidth=10Gbps"));
}
inline World racks(const std::string& shape, const std::string& more = "") {
  return World(parse_cluster("racks:" + shape + ",inner=20us/10Gbps,outer=200us/1Gbps" + more));
}
inline World without(const World& world, const std::set<Rank>& dead) {
  std::vector<Rank> live;
  for (const Rank rank : world.ranks())
    if (!dead.contains(rank)) live.push_back(rank);
  return {world.cluster, {1, Group(live)}};
}

inline Trace trace(int layers = 3, std::int64_t elements = 1'000'000) {
  Trace made{.model = "test", .layers = {}, .source = ""};
  for (int i = 0; i < layers; ++i)
    made.layers.push_back(
        {"layer" + std::to_string(i), elements, milliseconds(1), milliseconds(2)});
  return made;
}

inline NamedStrategy make(const std::string& spec) {
  return StrategyTable::builtin().make(spec);
}
inline BucketPlan buckets(const NamedStrategy& strategy, const World& world,
                          const Trace& of = trace()) {
  return strategy->buckets(of, CostModel(world.cluster), world);
}
inline Program program(const std::string& spec, Step step, const World& world) {
  const NamedStrategy strategy = make(spec);
  return strategy->program(step, world, buckets(strategy, world));
}

// The groups of bucket 0 that exchange weights, in order of their first rank: "{0 1} {2 3}".
inline std::string groups(const std::string& spec, Step step, const World& world) {
  Partition partition;
  for (const Exchange& exchange : program(spec, step, world).exchanges)
    if (exchange.bucket == 0 && exchange.payload == Payload::weight)
      partition.push_back(exchange.group);
  std::ranges::stable_sort(partition, {}, [](const Group& g) { return g.ranks().front(); });
  return print(partition);
}

}  // namespace riffle::test
