// What is served (asp, ssp) on per-worker clocks: nobody waits for another's step, shards share
// links.
#include <gtest/gtest.h>

#include "testing.h"

namespace riffle {
namespace {

using testing::simulate_spec;
using testing::small_trace;

Seconds step_of(const std::string& cluster, const std::string& spec) {
  return simulate_spec(small_trace(), parse_cluster(cluster), spec).iteration;
}

const std::string kFast = "flat:8,latency=1us,bandwidth=1000Gbps";

TEST(Served, ASlowHostSlowsOnlyItself) {
  const Seconds compute = small_trace().compute();
  for (const double slow : {1.25, 2.0, 4.0}) {
    const std::string lame = kFast + ",slow=3*" + std::to_string(slow);
    // The mean over workers: seven as fast as ever, and one.
    EXPECT_NEAR(step_of(lame, "asp") / compute, (7 + slow) / 8, 0.01) << slow;
    EXPECT_NEAR(step_of(lame, "bsp") / compute, slow, 0.01) << slow;
    // The bound holds the fast up, for good.
    for (const char* bound : {"0", "1", "8"})
      EXPECT_NEAR(step_of(lame, std::string("ssp:staleness=") + bound) / compute, slow, 0.02)
          << slow << " bound " << bound;
  }
}

TEST(Served, ABoundLetsHiccupsPass) {
  const Trace trace = small_trace();
  const Cluster cluster = parse_cluster(kFast + ",straggle=5%*3");
  const auto step = [&](const std::string& spec) {
    return simulate_spec(trace, cluster, spec, {.seed = 3, .steps = 160}).iteration;
  };
  const Seconds free = step("asp");
  EXPECT_LT(step("ssp:staleness=8") / free, 1.1);
  EXPECT_GT(step("ssp:staleness=1"), step("ssp:staleness=8"));
  EXPECT_GT(step("ssp:staleness=0") / free, 1.3);
  EXPECT_NEAR(step("ssp:staleness=0") / step("bsp"), 1, 0.02);
}

// One bucket: after the last update all push, and all are answered: as the cost model has it, up to
// 64 members message by message.
TEST(Served, TakesWhatTheCostModelSaysOfWorkersInStep) {
  for (const std::string where :
       {"flat:2,latency=1ms,bandwidth=1Gbps", "flat:8,latency=1ms,bandwidth=1Gbps",
        "flat:8,latency=1ms,bandwidth=1Gbps,gamma=1ns",
        "racks:2x2,inner=20us/10Gbps,outer=200us/100Mbps",
        "racks:4x4,inner=20us/10Gbps,outer=200us/1Gbps", "flat:100,latency=1ms,bandwidth=1Gbps",
        "racks:2x40,inner=20us/10Gbps,outer=200us/1Gbps"}) {
    const Trace trace = small_trace();
    const Cluster cluster = parse_cluster(where);
    const World world(cluster);
    const NamedStrategy asp = StrategyTable::builtin().make("asp:bucket=single");
    const BucketPlan buckets = asp->buckets(trace, CostModel(cluster), world);
    const Exchange exchange = asp->program(0, world, buckets).exchanges.front();
    const Seconds expected =
        trace.compute() + CostModel(cluster).time(exchange, buckets.front().bytes);
    for (const char* spec : {"asp:bucket=single", "ssp:bucket=single"})
      EXPECT_NEAR(simulate_spec(trace, cluster, spec).iteration / expected, 1, 1e-6)
          << where << " " << spec;
  }
}

// Its shard is as slow for all as its link is.
TEST(Served, AShardBehindASlowLinkHoldsUpWhoNeedsIt) {
  const std::string quick = "flat:4,latency=10us,bandwidth=10Gbps";
  const Cluster healthy = parse_cluster(quick);
  Cluster lame = healthy;
  lame.workers[2].link.bandwidth =
      Bandwidth{healthy.workers[2].link.bandwidth.bytes_per_second / 50};
  EXPECT_GT(simulate_spec(small_trace(), lame, "asp").iteration,
            2 * simulate_spec(small_trace(), healthy, "asp").iteration);
}

}  // namespace
}  // namespace riffle
