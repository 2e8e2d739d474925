#include "measure/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/median.h"

namespace riffle::measure {
namespace {

constexpr Bytes kTypical = kibibytes(256);

bool is_farther(Seconds far, Seconds near) {
  return far >= kGap * near && far - near >= kNoise;
}

std::vector<Seconds> weights_between(const PairLinks& pairs, const Group& a, const Group& b) {
  std::vector<Seconds> weights;
  for (const Rank i : a)
    for (const Rank j : b)
      if (i != j) weights.push_back(weigh(pairs.between(i, j)));
  return weights;
}

Group slow_hosts(const PairLinks& pairs) {
  std::vector<Seconds> nearest;
  for (const Rank rank : pairs.ranks)
    nearest.push_back(std::ranges::min(weights_between(pairs, Group{rank}, pairs.ranks)));
  const Seconds usual = median(nearest);
  std::vector<Rank> slow;
  for (const Rank rank : pairs.ranks)
    if (is_farther(nearest[pairs.ranks.index_of(rank)], usual)) slow.push_back(rank);
  return Group(std::move(slow));
}

Group difference(const Group& all, const Group& without) {
  std::vector<Rank> rest;
  std::ranges::set_difference(all, without, std::back_inserter(rest));
  return Group(std::move(rest));
}

Partition restricted(const Partition& partition, const Group& to) {
  Partition rest;
  for (const Group& each : partition) {
    const Group left = difference(each, difference(each, to));
    if (!left.empty()) rest.push_back(left);
  }
  return rest;
}

// Racks grow together along the shortest links first.
class Components {
 public:
  explicit Components(const Group& ranks) {
    for (const Rank rank : ranks) root_[rank] = rank;
  }
  bool join(Rank a, Rank b) {
    const Rank to = root_.at(a);
    const Rank from = root_.at(b);
    if (to == from) return false;
    for (auto& [rank, root] : root_)
      if (root == from) root = to;
    return true;
  }
  [[nodiscard]] Partition partition() const {
    std::map<Rank, std::vector<Rank>> by_root;
    for (const auto& [rank, root] : root_) by_root[root].push_back(rank);
    Partition partition;
    for (auto& [root, ranks] : by_root) partition.emplace_back(std::move(ranks));
    std::ranges::sort(partition, {}, [](const Group& each) { return each.ranks().front(); });
    return partition;
  }

 private:
  std::map<Rank, Rank> root_;
};

// Links across any two racks are longer than links inside either; medians, so that a disturbed
// pair decides nothing.
bool is_separate(const PairLinks& pairs, const Partition& racks) {
  std::vector<Seconds> inside;
  for (const Group& rack : racks) {
    const auto weights = weights_between(pairs, rack, rack);
    inside.push_back(weights.empty() ? Seconds{} : median(weights));
  }
  for (std::size_t a = 0; a < racks.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (!is_farther(median(weights_between(pairs, racks[a], racks[b])),
                      std::max(inside[a], inside[b])))
        return false;
  return true;
}

Partition infer_racks(const PairLinks& pairs, const Group& among, const Partition& before) {
  std::vector<std::tuple<Seconds, Rank, Rank>> links;
  for (const Rank a : among)
    for (const Rank b : among)
      if (a < b) links.emplace_back(weigh(pairs.between(a, b)), a, b);
  std::ranges::sort(links);
  const Partition known = restricted(before, among);
  Components components(among);
  for (const auto& [weight, a, b] : links) {
    if (!components.join(a, b)) continue;
    Partition racks = components.partition();
    if (racks.size() == 1) return racks;
    const bool plausible = racks == known || std::ranges::all_of(racks, [](const Group& rack) {
                             return rack.size() > 1;
                           });
    if (plausible && is_separate(pairs, racks)) return racks;
  }
  return {among};
}

// Where a slow host belongs: with those it was with before, else with the nearest.
std::size_t rack_of(const PairLinks& pairs, Rank slow, const Partition& racks,
                    const Partition& before) {
  std::size_t best = 0;
  std::pair<int, Seconds> best_score{0, Seconds(1e9)};
  for (std::size_t r = 0; r < racks.size(); ++r) {
    int known = 0;
    for (const Group& each : before)
      if (before.size() > 1 && each.contains(slow))
        for (const Rank rank : each) known += racks[r].contains(rank) ? 1 : 0;
    const std::pair score{-known, median(weights_between(pairs, Group{slow}, racks[r]))};
    if (score < best_score) {
      best = r;
      best_score = score;
    }
  }
  return best;
}

// Half of both uplinks and the links at the ends make a path, so three racks tell the uplink of
// each; of two only the sum is known.
Seconds uplink_latency(const std::vector<Rank>& racks, Rank own, const PairLinks& across,
                       Seconds inside) {
  const auto both = [&](Rank a, Rank b) { return 2 * (across.between(a, b).latency - inside); };
  std::vector<Seconds> estimates;
  for (const Rank b : racks)
    for (const Rank c : racks)
      if (b < c && b != own && c != own)
        estimates.push_back((both(own, b) + both(own, c) - both(b, c)) / 2);
  if (estimates.empty())
    for (const Rank b : racks)
      if (b != own) estimates.push_back(both(own, b) / 2);
  return std::max(median(estimates), Seconds{});
}

// The best that came over it: the other end may be the slow one.
Bandwidth uplink_bandwidth(const std::vector<Rank>& racks, Rank own, const PairLinks& across) {
  Bandwidth best;
  for (const Rank other : racks)
    if (other != own) best = std::max(best, across.between(own, other).bandwidth);
  return best;
}

Link median_link(const PairLinks& pairs, const Partition& racks) {
  std::vector<Seconds> latencies;
  std::vector<Bandwidth> rates;
  for (const Group& rack : racks)
    for (const Rank a : rack)
      for (const Rank b : rack) {
        if (a == b) continue;
        latencies.push_back(pairs.between(a, b).latency);
        rates.push_back(pairs.between(a, b).bandwidth);
      }
  // Racks of one have nothing inside.
  if (latencies.empty()) return {.latency = microseconds(20), .bandwidth = {5e9}};
  return {.latency = median(latencies), .bandwidth = median(rates)};
}

// Its latency as measured; its bandwidth such that it acts on a typical message as measured, and at
// least so much below the usual one that whoever reads the cluster finds it slow too.
Link slow_link(const PairLinks& pairs, Rank slow, const Group& neighbours, const Link& usual) {
  std::vector<Seconds> latencies;
  for (const Rank rank : neighbours)
    if (rank != slow) latencies.push_back(pairs.between(slow, rank).latency);
  if (latencies.empty()) return usual;
  const Seconds weight = median(weights_between(pairs, Group{slow}, neighbours));
  const double factor = std::max(weight / weigh(usual), 1.01 * kSlowHost);
  return {.latency = std::max(2 * median(latencies) - usual.latency, Seconds{}),
          .bandwidth = {usual.bandwidth.bytes_per_second / factor}};
}

}  // namespace

Seconds weigh(const Link& link) {
  return link.latency + kTypical / link.bandwidth;
}

Topology infer_topology(const PairLinks& pairs, const Partition& hosts, const Partition& before) {
  if (std::ranges::any_of(hosts, [](const Group& host) { return host.size() > 1; }))
    return {hosts, {}};
  const Group slow = slow_hosts(pairs);
  Partition racks = infer_racks(pairs, difference(pairs.ranks, slow), before);
  std::vector<std::vector<Rank>> whole;
  for (const Group& rack : racks) whole.push_back(rack.ranks());
  for (const Rank rank : slow) whole[rack_of(pairs, rank, racks, before)].push_back(rank);
  Topology topology{{}, slow};
  for (auto& ranks : whole) topology.racks.emplace_back(std::move(ranks));
  return topology;
}

Group speakers(const Topology& topology) {
  std::vector<Rank> ranks;
  for (const Group& rack : topology.racks) {
    const Group fast = difference(rack, topology.slow);
    ranks.push_back((fast.empty() ? rack : fast).ranks().front());
  }
  return Group(std::move(ranks));
}

Cluster cluster_of(const Topology& topology, const PairLinks& pairs, const PairLinks& across) {
  const Group fast = difference(pairs.ranks, topology.slow);
  const Link inside = median_link(pairs, restricted(topology.racks, fast));
  const bool flat = topology.racks.size() == 1;
  Cluster cluster;
  cluster.domains.push_back({"root", -1, {}});
  cluster.workers.resize(static_cast<std::size_t>(pairs.ranks.size()));
  for (const Group& rack : topology.racks) {
    if (!flat) {
      Rank own = rack.ranks().front();
      for (const Rank rank : rack)
        if (across.ranks.contains(rank)) own = rank;
      cluster.domains.push_back(
          {fmt::format("rack{}", cluster.domains.size() - 1),
           0,
           {.latency = uplink_latency(across.ranks.ranks(), own, across, inside.latency),
            .bandwidth = uplink_bandwidth(across.ranks.ranks(), own, across)}});
    }
    for (const Rank rank : rack)
      cluster.workers[rank] = {
          .domain = static_cast<int>(cluster.domains.size()) - 1,
          .link = topology.slow.contains(rank)
                      ? slow_link(pairs, rank, difference(rack, topology.slow), inside)
                      : inside};
  }
  return cluster;
}

}  // namespace riffle::measure
