// Racks and sites from what was measured between hosts: made-up numbers, no network.
#include "measure/levels.h"

#include <gtest/gtest.h>

#include <set>

#include "made_up.h"
#include "measure/linkage.h"

namespace riffle::measure {
namespace {

constexpr Noise kNone{};
constexpr Noise kQuiet{.latency = 0.05, .rate = 0.05};
constexpr Noise kNoisy{.latency = 0.15, .rate = 0.1};

// "{0 1 {2 3}}": parts inside parts.
std::string print(const Levels& levels, int part = 0) {
  std::string text;
  const std::vector<int> inner = parts_of(levels, part);
  if (inner.empty())
    for (const int host : levels[part].hosts)
      text += (text.empty() ? "" : " ") + std::to_string(host);
  for (const int each : inner) text += (text.empty() ? "" : " ") + print(levels, each);
  return "{" + text + "}";
}

std::string found(const Cluster& cluster, const Noise& noise, const std::vector<int>& before = {}) {
  return print(find_levels(latencies_of(cluster, noise), rates_of(cluster, noise), microseconds(50),
                           before));
}

std::string found(const std::string& spec, const Noise& noise = {}) {
  return found(parse_cluster(spec), noise);
}

TEST(Levels, EqualLinksAreOneRack) {
  for (const Noise& noise : {kNone, kQuiet, kNoisy})
    for (const int n : {1, 2, 3, 4, 7, 8, 16})
      for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Noise other = noise;
        other.seed = seed;
        const std::string spec = "flat:" + std::to_string(n) + ",latency=1ms,bandwidth=1Gbps";
        EXPECT_EQ(find_levels(latencies_of(parse_cluster(spec), other),
                              rates_of(parse_cluster(spec), other))
                      .size(),
                  1U)
            << spec << " seed " << seed;
      }
}

TEST(Levels, RacksByLatencyAlone) {
  for (const Noise& noise : {kNone, kQuiet, kNoisy})
    EXPECT_EQ(found("racks:2x3,inner=1ms/1Gbps,outer=1ms/100Gbps", noise), "{{0 1 2} {3 4 5}}");
  EXPECT_EQ(found("racks:2x4,inner=1ms/1Gbps,outer=0.4ms/100Gbps", kQuiet),
            "{{0 1 2 3} {4 5 6 7}}");
  EXPECT_EQ(found("racks:2x3,inner=20us/1Gbps,outer=200us/100Gbps", kQuiet), "{{0 1 2} {3 4 5}}");
}

// Latencies are the same everywhere; only that the uplink is shared tells the racks.
TEST(Levels, RacksByContentionAlone) {
  for (const Noise& noise : {kNone, kQuiet, kNoisy}) {
    EXPECT_EQ(found("racks:2x2,inner=1ms/1Gbps,outer=0us/1Gbps", noise), "{{0 1} {2 3}}");
    EXPECT_EQ(found("racks:2x4,inner=1ms/1Gbps,outer=0us/1Gbps", noise), "{{0 1 2 3} {4 5 6 7}}");
    EXPECT_EQ(found("racks:4x4,inner=1ms/1Gbps,outer=0us/1Gbps", noise),
              "{{0 1 2 3} {4 5 6 7} {8 9 10 11} {12 13 14 15}}");
    EXPECT_EQ(found("racks:3x3,inner=1ms/1Gbps,outer=0us/500Mbps", noise),
              "{{0 1 2} {3 4 5} {6 7 8}}");
  }
}

// An uplink that carries all its hosts can send is no link to care about.
TEST(Levels, WideUplinksAreNone) {
  EXPECT_EQ(found("racks:2x4,inner=1ms/1Gbps,outer=0us/4Gbps", kQuiet), "{0 1 2 3 4 5 6 7}");
}

TEST(Levels, SitesOfRacks) {
  for (const Noise& noise : {kNone, kQuiet})
    EXPECT_EQ(found("sites:2x2x2,inner=1ms/1Gbps,outer=1ms/1Gbps,wan=5ms/500Mbps", noise),
              "{{{0 1} {2 3}} {{4 5} {6 7}}}");
  // Racks that only contention tells, in sites that latency tells.
  EXPECT_EQ(found("sites:2x2x4,inner=1ms/1Gbps,outer=0us/1Gbps,wan=20ms/1Gbps", kQuiet),
            "{{{0 1 2 3} {4 5 6 7}} {{8 9 10 11} {12 13 14 15}}}");
}

TEST(Levels, ScatteredRacks) {
  Cluster cluster = parse_cluster("racks:3x3,inner=100us/1Gbps,outer=1ms/1Gbps");
  for (Rank rank = 0; rank < 9; ++rank) cluster.workers[rank].domain = 1 + rank % 3;
  EXPECT_EQ(found(cluster, kQuiet), "{{0 3 6} {1 4 7} {2 5 8}}");
}

TEST(Levels, ASlowHostIsNoRack) {
  Cluster cluster = parse_cluster("flat:8,latency=1ms,bandwidth=1Gbps");
  for (const Link& slow : {Link{milliseconds(20), {125e6}}, Link{milliseconds(1), {5e6}}}) {
    cluster.workers[5].link = slow;
    for (const Noise& noise : {kNone, kQuiet, kNoisy})
      EXPECT_EQ(found(cluster, noise), "{0 1 2 3 4 5 6 7}");
  }
}

TEST(Levels, AFarHostStaysInItsRack) {
  Cluster cluster = parse_cluster("racks:2x4,inner=1ms/1Gbps,outer=2ms/1Gbps");
  cluster.workers[6].link.latency = milliseconds(20);
  EXPECT_EQ(found(cluster, {.latency = 0.02}), "{{0 1 2 3} {4 5 6 7}}");
}

// Its own link hides the uplink: what was known decides.
TEST(Levels, ANarrowHostStaysWhereItWas) {
  Cluster cluster = parse_cluster("racks:2x4,inner=1ms/1Gbps,outer=0us/500Mbps");
  cluster.workers[6].link.bandwidth = {2e6};
  EXPECT_EQ(found(cluster, kQuiet, {0, 0, 0, 0, 1, 1, 1, 1}), "{{0 1 2 3} {4 5 6 7}}");
}

TEST(Levels, GapsAreFilledByTheRest) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed)
    EXPECT_EQ(found("racks:2x8,inner=1ms/1Gbps,outer=0us/1Gbps",
                    {.latency = 0.05, .rate = 0.05, .missing = 0.4, .seed = seed}),
              "{{0 1 2 3 4 5 6 7} {8 9 10 11 12 13 14 15}}")
        << "seed " << seed;
}

// What is less than the noise is none.
TEST(Levels, NoiseIsNoRack) {
  const Cluster cluster = parse_cluster("racks:2x3,inner=1ms/1Gbps,outer=1ms/100Gbps");
  EXPECT_EQ(find_levels(latencies_of(cluster, {}), rates_of(cluster, {}), milliseconds(1)).size(),
            1U);
}

TEST(Linkage, JoinsTheNearestFirst) {
  PairTable<double> distance(4);
  const std::vector<double> places{0, 1, 10, 12};
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < a; ++b) distance.set_both(a, b, std::abs(places[a] - places[b]));
  const std::vector<Sets> all = linkage(distance, {0, 1, 2, 3});
  EXPECT_EQ(all[3], (Sets{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(all[2], (Sets{{0, 1}, {2}, {3}}));
  EXPECT_EQ(all[1], (Sets{{0, 1}, {2, 3}}));
  EXPECT_EQ(all[0], (Sets{{0, 1, 2, 3}}));
}

TEST(Tournament, EverybodyMeetsEverybodyOnce) {
  for (int n = 1; n <= 17; ++n) {
    std::set<std::pair<int, int>> met;
    for (int round = 0; round < rounds_of(n); ++round)
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
