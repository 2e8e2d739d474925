// The cluster that explains what was measured: made-up numbers, no network.
#include "measure/cluster_fit.h"

#include <gtest/gtest.h>

#include "made_up.h"

namespace riffle::measure {
namespace {

void expect_close(const Cluster& found, const Cluster& cluster, double share) {
  ASSERT_EQ(found.domains.size(), cluster.domains.size()) << print(found);
  for (int a = 0; a < cluster.size(); ++a)
    for (int b = 0; b < a; ++b)
      EXPECT_NEAR(found.latency(a, b) / cluster.latency(a, b), 1, share) << a << " " << b;
  for (std::size_t d = 1; d < cluster.domains.size(); ++d)
    EXPECT_NEAR(found.domains[d].uplink.bandwidth.bytes_per_second /
                    cluster.domains[d].uplink.bandwidth.bytes_per_second,
                1, share)
        << cluster.domains[d].name;
  for (int a = 0; a < cluster.size(); ++a)
    EXPECT_NEAR(found.workers[a].link.bandwidth.bytes_per_second /
                    cluster.workers[a].link.bandwidth.bytes_per_second,
                1, share)
        << a;
}

// Without noise the very cluster comes back, spelled as it was.
TEST(ClusterFit, GivesTheClusterThatWasMeasured) {
  for (const char* spec :
       {"flat:2,latency=2ms,bandwidth=200Mbps", "flat:5,latency=250us,bandwidth=1Gbps",
        "racks:2x4,inner=1ms/100Mbps,outer=4ms/50Mbps",
        "racks:4x2,inner=20us/10Gbps,outer=200us/1Gbps",
        "sites:2x2x2,inner=1ms/1Gbps,outer=1ms/1Gbps,wan=5ms/500Mbps"}) {
    const ClusterFit fit = fit_cluster(measured_on(parse_cluster(spec)));
    EXPECT_EQ(fit.cluster, parse_cluster(spec)) << print(fit.cluster);
    EXPECT_LT(fit.latency.worst, 1e-3);
    EXPECT_LT(fit.rate.worst, 1e-3);
  }
}

TEST(ClusterFit, IsCloseWhereThereIsNoise) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed)
    for (const char* spec :
         {"flat:6,latency=2ms,bandwidth=200Mbps", "racks:3x4,inner=1ms/100Mbps,outer=4ms/50Mbps",
          "sites:2x2x4,inner=1ms/1Gbps,outer=2ms/1Gbps,wan=20ms/500Mbps"}) {
      const Cluster cluster = parse_cluster(spec);
      const ClusterFit fit =
          fit_cluster(measured_on(cluster, {.latency = 0.04, .rate = 0.04, .seed = seed}));
      expect_close(fit.cluster, cluster, 0.06);
      EXPECT_LT(fit.latency.worst, 0.06);
    }
}

// Each link by itself where three tell them apart.
TEST(ClusterFit, FindsUnequalLinks) {
  Cluster cluster = parse_cluster("racks:3x4,inner=1ms/1Gbps,outer=2ms/500Mbps");
  cluster.domains[2].uplink = {milliseconds(2.3), {12.5e6}};
  cluster.workers[1].link = {milliseconds(9), {125e6}};
  cluster.workers[9].link = {milliseconds(1), {10e6}};
  const ClusterFit fit = fit_cluster(measured_on(cluster));
  expect_close(fit.cluster, cluster, 1e-3);
  for (std::size_t d = 1; d < cluster.domains.size(); ++d)
    EXPECT_NEAR(fit.cluster.domains[d].uplink.latency / cluster.domains[d].uplink.latency, 1, 1e-3);
  for (int a = 0; a < cluster.size(); ++a)
    EXPECT_NEAR(fit.cluster.workers[a].link.latency / cluster.workers[a].link.latency, 1, 1e-3);
}

// A rack with a long uplink of its own looks like a site of its own: which says the same of paths.
TEST(ClusterFit, ALongUplinkKeepsPathsAndRacks) {
  Cluster cluster = parse_cluster("racks:3x4,inner=1ms/1Gbps,outer=2ms/500Mbps");
  cluster.domains[2].uplink = {milliseconds(9), {12.5e6}};
  const ClusterFit fit = fit_cluster(measured_on(cluster));
  for (int a = 0; a < cluster.size(); ++a)
    for (int b = 0; b < a; ++b)
      EXPECT_NEAR(fit.cluster.latency(a, b) / cluster.latency(a, b), 1, 1e-3) << a << " " << b;
  Partition racks = World(fit.cluster).racks();
  std::ranges::sort(racks, {}, [](const Group& each) { return each.ranks().front(); });
  EXPECT_EQ(racks, World(cluster).racks());
}

// A link that is slower one way counts as that.
TEST(ClusterFit, TakesTheSlowerWay) {
  const Cluster cluster = parse_cluster("flat:4,latency=1ms,bandwidth=1Gbps");
  Measured measured = measured_on(cluster);
  for (int other = 0; other < 4; ++other)
    if (other != 2) measured.rate.at(2, other) = Bandwidth{25e6};
  const ClusterFit fit = fit_cluster(measured);
  EXPECT_NEAR(fit.cluster.workers[2].link.bandwidth.bytes_per_second, 25e6, 1);
  EXPECT_NEAR(fit.cluster.workers[1].link.bandwidth.bytes_per_second, 125e6, 1);
}

// Hosts of several ranks are domains whose uplinks are the hosts' links.
TEST(ClusterFit, RanksOfOneHostShareItsLink) {
  const Cluster hosts = parse_cluster("racks:2x2,inner=1ms/100Mbps,outer=4ms/50Mbps");
  Measured measured = measured_on(hosts);
  measured.hosts = {Group{0, 1}, Group{2, 3}, Group{4, 5, 6}, Group{7, 8}};
  const Cluster found = fit_cluster(measured).cluster;
  ASSERT_EQ(found.size(), 9);
  EXPECT_EQ(print(World(found).racks()), "{0 1} {2 3} {4 5 6} {7 8}");
  EXPECT_NEAR(found.latency(0, 1) / microseconds(5), 1, 1e-3);
  EXPECT_NEAR(found.latency(0, 2) / milliseconds(1), 1, 1e-2);
  EXPECT_NEAR(found.latency(1, 5) / milliseconds(5), 1, 1e-2);
  EXPECT_NEAR(found.domains[found.workers[4].domain].uplink.bandwidth.bytes_per_second, 12.5e6, 1);
  EXPECT_EQ(cluster_from_json(to_json(found), "found"), found);
}

TEST(ClusterFit, OneHostIsFlat) {
  Measured measured = measured_on(parse_cluster("flat:1,latency=1ms,bandwidth=1Gbps"));
  measured.hosts = {Group{0, 1, 2}};
  const Cluster found = fit_cluster(measured).cluster;
  EXPECT_EQ(found, parse_cluster("flat:3,latency=5us,bandwidth=40Gbps")) << print(found);
}

}  // namespace
}  // namespace riffle::measure
