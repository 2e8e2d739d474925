// What differs between two clusters, in words.
#include "model/cluster_change.h"

#include <gtest/gtest.h>

namespace riffle::model {
namespace {

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

TEST(ClusterChange, SeesBandwidthBehindLatencyAndEveryLevel) {
  const Cluster before = parse_cluster("racks:2x4,inner=1ms/1Gbps,outer=20ms/500Mbps");
  Cluster now = before;
  now.domains[1].uplink.bandwidth = {500e6 / 8 / 2};
  EXPECT_EQ(changes(before, now).size(), 1U);
  const Cluster sites =
      parse_cluster("sites:2x2x2,inner=20us/10Gbps,outer=200us/10Gbps,wan=5ms/1Gbps");
  now = sites;
  ASSERT_EQ(now.domains[1].parent, 0);
  now.domains[1].uplink.bandwidth = {1e9 / 8 / 4};
  const std::vector<std::string> lines = changes(sites, now);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with("uplink of site0 (ranks 0-3): 5.00 ms, 1.00 Gbps")) << lines[0];
}

}  // namespace
}  // namespace riffle::model
