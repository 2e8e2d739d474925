#include "riffle/cluster.h"

#include <gmock/gmock.h>

#include "riffle/error.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Cluster, InlineSpellingsPrintBack) {
  for (const char* spec : {
           "flat:16,latency=50us,bandwidth=10Gbps",
           "racks:4x4,inner=20us/10Gbps,outer=200us/1Gbps",
           "sites:2x4x4,inner=20us/10Gbps,outer=200us/1Gbps,wan=20ms/200Mbps",
           "fit:64,a=7.04ms,b=0.964ns",
           "flat:8,latency=1ms,bandwidth=1GB/s,algorithm=ring,gamma=0.1ns,slow=3*2,jitter=5%,"
           "straggle=1%*3",
       }) {
    const Cluster cluster = parse_cluster(spec);
    EXPECT_EQ(parse_cluster(print(cluster)), cluster) << print(cluster);
    EXPECT_EQ(cluster_from_json(to_json(cluster), "test"), cluster) << spec;
  }
  EXPECT_EQ(print(parse_cluster("flat:16,bandwidth=10Gbps,latency=50us")),
            "flat:16,latency=50us,bandwidth=10Gbps");
}

TEST(Cluster, LatencyAddsUpAlongThePath) {
  const Cluster cluster =
      parse_cluster("sites:2x2x2,inner=20us/10Gbps,outer=200us/1Gbps,wan=20ms/200Mbps");
  EXPECT_NEAR(cluster.latency(0, 1).count(), 20e-6, 1e-12);
  EXPECT_NEAR(cluster.latency(0, 2).count(), 220e-6, 1e-12);
  EXPECT_NEAR(cluster.latency(3, 4).count(), 20.22e-3, 1e-12);
  EXPECT_EQ(cluster.latency(5, 5).count(), 0);
}

TEST(Cluster, BadSpecsNameTheFieldAndTheWayOut) {
  const auto refused = [](const char* spec, const char* says) {
    EXPECT_THAT([&] { parse_cluster(spec); }, ThrowsMessage<UsageError>(HasSubstr(says))) << spec;
  };
  refused("flta:4", "nearest: flat");
  refused("flat:0,latency=1us,bandwidth=1Gbps", "must be from 1");
  refused("flat:4,latency=1us", "bandwidth= is missing");
  refused("flat:4,latency=1,bandwidth=1Gbps", "units that fit");
  refused("flat:4,latency=1us,bandwith=1Gbps", "nearest: bandwidth");
  refused("flat:4,latency=1us,bandwidth=1Gbps,slow=4*2", "rank 4 is not in 0..3");
  refused("racks:4,inner=1us/1Gbps,outer=1us/1Gbps", "racks:4x4");
  refused("flat:4,latency=1us,bandwidth=1Gbps,algorithm=rnig", "nearest: ring");
}

TEST(Cluster, ResizesWholeRacks) {
  const Cluster cluster = parse_cluster("racks:4x4,inner=20us/10Gbps,outer=200us/1Gbps,jitter=5%");
  EXPECT_EQ(print(resized(cluster, 64)),
            "racks:16x4,inner=20us/10Gbps,outer=200us/1Gbps,jitter=5%");
  EXPECT_THROW(resized(cluster, 6), UsageError);
}

}  // namespace
}  // namespace riffle
