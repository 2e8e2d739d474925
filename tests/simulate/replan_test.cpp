// Workers that notice a change of the network and plan again, by the rule of sessions.
#include "simulate/replan.h"

#include <gtest/gtest.h>

namespace riffle {
namespace {

const Cluster kCluster = parse_cluster("racks:2x4,inner=1ms/400Mbps,outer=2ms/200Mbps");

Trace even_trace() {
  Trace trace{.model = "even", .layers = {}, .source = "made up"};
  for (int i = 0; i < 20; ++i)
    trace.layers.push_back({"l" + std::to_string(i), 25'000, milliseconds(3), milliseconds(6)});
  return trace;
}

Simulation run(const std::string& spec, const std::string& events, bool replan) {
  SimulateOptions options;
  options.steps = 150;
  options.changes = parse_changes(events, "events");
  options.replan = replan;
  return simulate(even_trace(), kCluster, StrategyTable::builtin().make(spec), options);
}

const std::string kFall = "at=8s,link=rack1,bandwidth=20Mbps at=25s,link=rack1,bandwidth=200Mbps";
const std::string kLoad = "at=8s,link=rack1,load=180Mbps at=25s,link=rack1,load=0";

TEST(SimulatedReplan, NoticesAFallAndARecovery) {
  for (const std::string spec : {"ds-sync:pattern=bottleneck", "mg-wfbp"})
    for (const std::string& events : {kFall, kLoad}) {
      const Simulation result = run(spec, events, true);
      ASSERT_EQ(result.replanned.size(), 2U) << spec << ", " << events;
      EXPECT_EQ(result.replanned[0].happened, Seconds(8));
      EXPECT_EQ(result.replanned[1].happened, Seconds(25));
      for (const Replanned& each : result.replanned) {
        EXPECT_GT(each.at, each.happened);
        EXPECT_LT(each.at - each.happened, Seconds(8)) << each.what;
        EXPECT_NE(each.what.find("uplink of rack 1"), std::string::npos) << each.what;
      }
    }
}

TEST(SimulatedReplan, NothingHappensWhereNothingChanges) {
  const Simulation plain = run("mg-wfbp", "at=9999s,link=rack1,bandwidth=20Mbps", false);
  const Simulation watched = run("mg-wfbp", "at=9999s,link=rack1,bandwidth=20Mbps", true);
  EXPECT_TRUE(watched.replanned.empty());
  EXPECT_NEAR(watched.iteration / plain.iteration, 1, 1e-9);
  EXPECT_EQ(watched.bytes_per_worker, plain.bytes_per_worker);
}

TEST(SimulatedReplan, ASmallChangeIsLeftAlone) {
  EXPECT_TRUE(run("mg-wfbp", "at=8s,link=rack1,bandwidth=160Mbps", true).replanned.empty());
}

TEST(SimulatedReplan, AClusterAfterItsChanges) {
  const auto changes = parse_changes(
      "at=1s,link=rack0,load=50Mbps at=2s,link=rack0,bandwidth=100Mbps at=3s,link=rack0,load=0 "
      "at=4s,worker=2,slow=3",
      "events");
  const auto uplink = [&](double at) {
    return simulator::changed(kCluster, changes, Seconds(at)).domains[1].uplink.bandwidth;
  };
  EXPECT_EQ(uplink(0.5), Bandwidth{200e6 / 8});
  EXPECT_EQ(uplink(1.5), Bandwidth{150e6 / 8});
  EXPECT_EQ(uplink(2.5), Bandwidth{50e6 / 8});
  EXPECT_EQ(uplink(3.5), Bandwidth{100e6 / 8});
  EXPECT_EQ(simulator::changed(kCluster, changes, Seconds(5)).workers[2].slow, 3);
}

// What was planned for another network runs as it was planned.
TEST(SimulatedReplan, PlannedForWhatWas) {
  Cluster now = kCluster;
  now.domains[2].uplink.bandwidth = {5e6};
  const NamedStrategy strategy = StrategyTable::builtin().make("mg-wfbp");
  const Seconds kept = simulate(even_trace(), now, strategy, {.planned = kCluster}).iteration;
  const Seconds planned = simulate(even_trace(), now, strategy).iteration;
  EXPECT_LE(planned, kept * 1.001);
  EXPECT_EQ(simulate(even_trace(), now, strategy, {.planned = now}).iteration, planned);
}

}  // namespace
}  // namespace riffle
