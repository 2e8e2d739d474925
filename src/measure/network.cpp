#include "measure/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "measure/calls.h"
#include "measure/topology.h"

namespace riffle::measure {
namespace {

constexpr Link kInside{microseconds(20), {5e9}};
constexpr Link kBetween{microseconds(100), {1.25e9}};

Cluster host_cluster(const Engine& engine, const Link& inside, const Link& between) {
  const Partition hosts = by_host(engine);
  Cluster cluster;
  cluster.domains.push_back({"root", -1, {}});
  cluster.workers.resize(static_cast<std::size_t>(engine.size()));
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const bool flat = hosts.size() == 1;
    if (!flat) cluster.domains.push_back({fmt::format("host{}", h), 0, between});
    for (const Rank rank : hosts[h])
      cluster.workers[rank] = {.domain = flat ? 0 : static_cast<int>(h) + 1, .link = inside};
  }
  return cluster;
}

}  // namespace

Partition by_host(const Engine& engine) {
  std::map<std::string, std::size_t> index;
  std::vector<std::vector<Rank>> hosts;
  for (Rank rank = 0; rank < engine.size(); ++rank) {
    const auto [found, fresh] = index.try_emplace(engine.host(rank), hosts.size());
    if (fresh) hosts.emplace_back();
    hosts[found->second].push_back(rank);
  }
  Partition partition;
  for (auto& ranks : hosts) partition.emplace_back(std::move(ranks));
  return partition;
}

Cluster assumed_cluster(const Engine& engine) {
  return host_cluster(engine, kInside, kBetween);
}

Cluster measured_cluster(Engine& engine, const collective::Control& control) {
  const Partition hosts = by_host(engine);
  Link inside = kInside;
  for (const Group& host : hosts)
    if (host.contains(engine.rank()) && host.size() > 1) inside = time_calls(engine, control, host);
  Link between = kBetween;
  if (hosts.size() > 1) {
    std::vector<Rank> firsts;
    for (const Group& host : hosts) firsts.push_back(host.ranks().front());
    const Group speakers(std::move(firsts));
    if (speakers.contains(engine.rank())) between = time_calls(engine, control, speakers);
  }
  return host_cluster(engine, inside, between);
}

Cluster sensed_cluster(Engine& engine, const collective::Control& control, const Partition& before,
                       const std::function<void()>& look_around) {
  constexpr int kMostProbes = 5;
  const Partition hosts = by_host(engine);
  PairLinks pairs = probe_pairs(engine, control, control.ranks, look_around);
  Topology topology = infer_topology(pairs, hosts, before);
  // A host that is busy for a moment looks slow once, not twice.
  for (int probes = 1; probes < kMostProbes; ++probes) {
    pairs = best_of(std::move(pairs), probe_pairs(engine, control, control.ranks, look_around));
    Topology again = infer_topology(pairs, hosts, before);
    const bool agrees = again == topology;
    topology = std::move(again);
    if (agrees) break;
  }
  const PairLinks across = probe_pairs(engine, control, speakers(topology), look_around);
  return cluster_of(topology, pairs, across);
}

}  // namespace riffle::measure
