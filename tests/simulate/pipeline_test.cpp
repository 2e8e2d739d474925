#include "simulate/pipeline.h"

#include <gtest/gtest.h>

#include "riffle/error.h"
#include "riffle/simulate.h"

namespace riffle {
namespace {

Trace four_layers() {
  Trace trace{.model = "four", .layers = {}, .source = ""};
  for (int i = 0; i < 4; ++i)
    trace.layers.push_back({"l" + std::to_string(i), 1'000'000, Seconds(0), milliseconds(1)});
  return trace;
}

// Four layers of 1 ms and 10^6 parameters; an all-reduce costs 1.2 ms and 1 ms more for each.
Simulation run(const char* strategy) {
  Cluster cluster = parse_cluster("fit:4,a=1.2ms,b=0.25ns");
  return simulate(four_layers(), cluster, StrategyTable::builtin().make(strategy));
}

TEST(Pipeline, TheCounterExampleOfTheMergeRule) {
  EXPECT_NEAR(run("mg-wfbp:merge=paper").iteration.count(), 9.2e-3, 1e-12);
  EXPECT_NEAR(run("mg-wfbp").iteration.count(), 8.2e-3, 1e-12);
  EXPECT_NEAR(run("wfbp").iteration.count(), 1e-3 + 4 * 2.2e-3, 1e-12);
  EXPECT_NEAR(run("single").iteration.count(), 4e-3 + 5.2e-3, 1e-12);
}

TEST(Pipeline, EfficiencyIsComputeOverIteration) {
  const Simulation result = run("mg-wfbp");
  EXPECT_NEAR(result.efficiency, 4 / 8.2, 1e-12);
  EXPECT_NEAR(result.speedup, 4 * 4 / 8.2, 1e-12);
  EXPECT_NEAR(result.exposed_communication.count(), 4.2e-3, 1e-12);
  ASSERT_EQ(result.buckets.size(), 2);
  EXPECT_NEAR(result.buckets[0].start.count(), 1e-3, 1e-12);
  EXPECT_NEAR(result.buckets[1].end.count(), 8.2e-3, 1e-12);
}

TEST(Pipeline, OneWorkerExchangesNothing) {
  const Simulation result =
      simulate(four_layers(), parse_cluster("flat:1,latency=1ms,bandwidth=1Gbps"),
               StrategyTable::builtin().make("wfbp"));
  EXPECT_NEAR(result.iteration.count(), 4e-3, 1e-12);
  EXPECT_EQ(result.bytes_per_worker, 0);
}

}  // namespace
}  // namespace riffle
