// Racks and slow hosts from links between pairs: made-up links, no network.
#include "measure/topology.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <set>

#include "measure/cluster_change.h"
#include "riffle/random.h"

namespace riffle::measure {
namespace {

constexpr Link kNear{microseconds(20), {1.25e9}};

Group ranks_up_to(int n) {
  return Membership::all(n).ranks;
}

Partition hosts_of(int n) {
  Partition hosts;
  for (Rank rank = 0; rank < n; ++rank) hosts.push_back(Group{rank});
  return hosts;
}

// Noise only makes a link weigh more, up to `noise` times as much.
PairLinks links(const Group& ranks, const std::function<Link(Rank, Rank)>& between,
                double noise = 0) {
  PairLinks pairs{ranks, {}};
  const auto n = static_cast<std::size_t>(ranks.size());
  pairs.links.resize(n * n);
  Random random(7);
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < a; ++b) {
      Link link = between(ranks.ranks()[b], ranks.ranks()[a]);
      const double factor = 1 + noise * random.uniform(0, 1);
      link.latency *= factor;
      link.bandwidth.bytes_per_second /= factor;
      pairs.links[a * n + b] = pairs.links[b * n + a] = link;
    }
  return pairs;
}

Cluster inferred(int n, const std::function<Link(Rank, Rank)>& between, double noise = 0,
                 const Partition& before = {}) {
  const PairLinks pairs = links(ranks_up_to(n), between, noise);
  const Topology topology = infer_topology(pairs, hosts_of(n), before);
  return cluster_of(topology, pairs, links(speakers(topology), between));
}

// What a path of a cluster gives: half of the latency of each link, the least bandwidth.
std::function<Link(Rank, Rank)> paths_of(const Cluster& cluster) {
  return [=](Rank a, Rank b) {
    const WorkerSpec& one = cluster.workers[a];
    const WorkerSpec& other = cluster.workers[b];
    Bandwidth rate = std::min(one.link.bandwidth, other.link.bandwidth);
    if (one.domain != other.domain)
      rate = std::min({rate, cluster.domains[one.domain].uplink.bandwidth,
                       cluster.domains[other.domain].uplink.bandwidth});
    return Link{cluster.latency(a, b), rate};
  };
}

TEST(Topology, EqualLinksAreOneRack) {
  for (const double noise : {0.0, 0.3, 1.0})
    for (const int n : {3, 4, 7, 16}) {
      const Cluster cluster = inferred(n, [](Rank, Rank) { return kNear; }, noise);
      EXPECT_EQ(summary(cluster), "1 rack: 0-" + std::to_string(n - 1)) << "noise " << noise;
    }
}

TEST(Topology, RacksByBandwidthAlone) {
  const Cluster cluster = parse_cluster("racks:4x4,inner=20us/10Gbps,outer=0us/1Gbps");
  for (const double noise : {0.0, 0.3, 1.0})
    EXPECT_EQ(summary(inferred(16, paths_of(cluster), noise)), "4 racks: 0-3 | 4-7 | 8-11 | 12-15")
        << "noise " << noise;
}

TEST(Topology, RacksByLatencyAlone) {
  const Cluster cluster = parse_cluster("racks:2x3,inner=20us/10Gbps,outer=2ms/10Gbps");
  for (const double noise : {0.0, 0.3, 1.0})
    EXPECT_EQ(summary(inferred(6, paths_of(cluster), noise)), "2 racks: 0-2 | 3-5")
        << "noise " << noise;
}

TEST(Topology, UplinksAreMeasuredOneByOne) {
  Cluster cluster = parse_cluster("racks:3x4,inner=20us/10Gbps,outer=200us/1Gbps");
  cluster.domains[2].uplink = {milliseconds(3), {12.5e6}};
  const Cluster found = inferred(12, paths_of(cluster));
  ASSERT_EQ(World(found).racks(), World(cluster).racks());
  for (int d = 1; d <= 3; ++d) {
    EXPECT_NEAR(found.domains[d].uplink.latency.count(), cluster.domains[d].uplink.latency.count(),
                1e-9);
    EXPECT_NEAR(found.domains[d].uplink.bandwidth.bytes_per_second,
                cluster.domains[d].uplink.bandwidth.bytes_per_second, 1);
  }
  EXPECT_TRUE(changes(cluster, found).empty());
}

TEST(Topology, ScatteredRacks) {
  const auto rack = [](Rank rank) { return rank % 3; };
  const Cluster cluster = inferred(
      9, [&](Rank a, Rank b) { return rack(a) == rack(b) ? kNear : Link{milliseconds(1), {1e8}}; });
  EXPECT_EQ(print(World(cluster).racks()), "{0 3 6} {1 4 7} {2 5 8}");
}

TEST(Topology, ASlowHostIsNoRack) {
  const auto slow = [](Rank a, Rank b) {
    return a == 5 || b == 5 ? Link{microseconds(20), {6e7}} : kNear;
  };
  for (const double noise : {0.0, 0.3, 1.0}) {
    const Cluster cluster = inferred(8, slow, noise);
    EXPECT_EQ(summary(cluster), "1 rack: 0-7; slow: 5 (link)") << "noise " << noise;
    EXPECT_LT(cluster.workers[5].link.bandwidth.bytes_per_second, 1.25e9 / 2);
  }
}

TEST(Topology, ASlowHostStaysInItsRack) {
  Cluster cluster = parse_cluster("racks:2x4,inner=20us/10Gbps,outer=200us/1Gbps");
  cluster.workers[6].link = {milliseconds(20), {1.25e9}};
  EXPECT_EQ(summary(inferred(8, paths_of(cluster))), "2 racks: 0-3 | 4-7; slow: 6 (link)");
  // Its own link hides the uplink: what was known decides.
  cluster.workers[6].link = {microseconds(20), {1e6}};
  cluster.domains[1].uplink.latency = cluster.domains[2].uplink.latency = {};
  EXPECT_EQ(summary(inferred(8, paths_of(cluster), 0.5, World(cluster).racks())),
            "2 racks: 0-3 | 4-7; slow: 6 (link)");
}

TEST(Topology, HostsOfSeveralRanksAreTheRacks) {
  const Partition hosts{Group{0}, Group{1, 2}, Group{3, 4, 5}};
  const PairLinks pairs = links(ranks_up_to(6), [&](Rank a, Rank b) {
    for (const Group& host : hosts)
      if (host.contains(a) && host.contains(b)) return Link{microseconds(1), {5e9}};
    return kNear;
  });
  const Topology topology = infer_topology(pairs, hosts, {});
  EXPECT_EQ(topology.racks, hosts);
  EXPECT_TRUE(topology.slow.empty());
}

TEST(ClusterChange, SaysWhatCounts) {
  const Cluster before = parse_cluster("racks:2x4,inner=20us/10Gbps,outer=200us/10Gbps");
  EXPECT_TRUE(changes(before, before).empty());
  Cluster now = before;
  now.domains[2].uplink.bandwidth = {1.25e9 / 1.2};
  EXPECT_TRUE(changes(before, now).empty()) << "a fifth";
  now.domains[2].uplink.bandwidth = {1.25e8};
  now.workers[1].slow = 3.14;
  now.workers[2].link.bandwidth = now.workers[3].link.bandwidth = {1.25e8};
  const std::vector<std::string> expected{
      "uplink of rack 1 (ranks 4-7): 200 us, 10.0 Gbps -> 200 us, 1.00 Gbps",
      "rank 1: computes 3.1 times as long as is usual",
      "ranks 2-3: link 20.0 us, 10.0 Gbps -> 20.0 us, 1.00 Gbps"};
  EXPECT_EQ(changes(before, now), expected);
  const Cluster flat = parse_cluster("flat:8,latency=20us,bandwidth=10Gbps");
  EXPECT_EQ(changes(before, flat),
            std::vector<std::string>{"1 rack: 0-7 (before 2 racks: 0-3 | 4-7)"});
}

TEST(Tournament, EverybodyMeetsEverybodyOnce) {
  for (int n = 1; n <= 17; ++n) {
    std::set<std::pair<int, int>> met;
    for (int round = 0; round < n + n % 2 - 1; ++round)
      for (int player = 0; player < n; ++player) {
        const int other = opponent(player, round, n);
        if (other < 0) continue;
        ASSERT_NE(other, player);
        ASSERT_EQ(opponent(other, round, n), player) << n << " round " << round;
        met.emplace(std::min(player, other), std::max(player, other));
      }
    EXPECT_EQ(met.size(), static_cast<std::size_t>(n * (n - 1) / 2)) << n;
  }
}

}  // namespace
}  // namespace riffle::measure
