#include "runtime/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "runtime/topology.h"

namespace riffle::runtime {
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

// As exchanges will run: in memory of the engine, beside threads that compute.
Seconds median_time(const Control& control, const Group& group, std::span<double> values) {
  constexpr int kTimes = 5;
  std::array<Seconds, kTimes> times{};
  CollectiveOptions options = control.options();
  options.background = true;
  for (Seconds& time : times) {
    const auto start = Clock::now();
    control.collectives.all_reduce(group, elements(values), options);
    time = Clock::now() - start;
  }
  std::ranges::sort(times);
  return times[kTimes / 2];
}

// The link that makes the closed form of an all-reduce fit two sizes; `otherwise` for a group that
// this rank is not in, or that has nobody to talk to.
Link measured_link(Engine& engine, const Control& control, const Group& group,
                   const Link& otherwise) {
  if (group.size() < 2 || !group.contains(engine.rank())) return otherwise;
  const Buffer buffer = engine.allocate(std::size_t{1} << 20);
  const std::span<double> values = buffer.as<double>();
  const std::size_t small = 128;
  (void)median_time(control, group, values);  // touches the memory
  const Seconds low = median_time(control, group, values.first(small));
  const Seconds high = median_time(control, group, values);
  const ClosedForm form =
      closed_form(group.size() <= kLargestDirect ? Algorithm::direct : Algorithm::halving_doubling,
                  Collective::all_reduce, group.size());
  const double bytes = static_cast<double>((values.size() - small) * sizeof(double));
  const double per_byte = std::max((high - low).count() / bytes, 1e-12);
  const Seconds start{
      std::max(low.count() - per_byte * static_cast<double>(small * sizeof(double)), 1e-7)};
  return {start / form.latencies, {form.bytes / per_byte}};
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

Cluster measured_cluster(Engine& engine, const Control& control) {
  const Partition hosts = by_host(engine);
  Link inside = kInside;
  for (const Group& host : hosts)
    if (host.contains(engine.rank())) inside = measured_link(engine, control, host, inside);
  Link between = kBetween;
  if (hosts.size() > 1) {
    std::vector<Rank> firsts;
    for (const Group& host : hosts) firsts.push_back(host.ranks().front());
    // By host order, which is by first rank: ascending.
    between = measured_link(engine, control, Group(std::move(firsts)), between);
  }
  return host_cluster(engine, inside, between);
}

Cluster sensed_cluster(Engine& engine, const Control& control, const Partition& before,
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

Algorithm algorithm_for(const Engine& engine, const CostModel& cost, const Exchange& exchange,
                        Bytes size) {
  const auto elsewhere = [&](Rank rank) {
    return engine.host(rank) != engine.host(exchange.group.ranks().front());
  };
  if (exchange.collective == Collective::shift || std::ranges::none_of(exchange.group, elsewhere))
    return exchange.algorithm;
  return cost.algorithm(exchange, size);
}

}  // namespace riffle::runtime
