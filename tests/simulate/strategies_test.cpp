// What the papers say of whole strategies, and what every strategy must keep.
#include <gtest/gtest.h>

#include <algorithm>

#include "riffle/error.h"
#include "testing.h"

namespace riffle {
namespace {

using testing::simulate_spec;
using testing::small_trace;

// T_comp = T_slow, racks much faster than the uplink: papers.md 2.2.
struct Racks {
  Cluster cluster;
  Trace trace;
};

Racks slow_uplinks(double compute_share) {
  // The delegates' all-reduce of 4 MB over 4 racks takes 1.5 * 4 MB / 12.5 MB/s = 480 ms.
  const Seconds compute = milliseconds(480) * compute_share;
  return {parse_cluster("racks:4x4,inner=1us/100Gbps,outer=1us/100Mbps,algorithm=ring"),
          small_trace(1, 1'000'000, compute / 3, compute * 2 / 3)};
}

double over_hierarchical(const Racks& racks, const std::string& spec) {
  Cluster two_level = racks.cluster;
  two_level.algorithm = Algorithm::two_level;
  return simulate_spec(racks.trace, two_level, "hierarchical").iteration /
         simulate_spec(racks.trace, racks.cluster, spec).iteration;
}

TEST(DsSync, DelegatesGainAtMostHalfOverHierarchical) {
  for (const double share : {0.1, 0.25, 0.5, 1.0, 2.0, 4.0}) {
    const double gain =
        over_hierarchical(slow_uplinks(share), "ds-sync:pattern=bottleneck,delay=0,bucket=single");
    EXPECT_LE(gain, 1.5 + 1e-3) << share;
    EXPECT_GE(gain, 1 - 1e-3) << share;
  }
  // T_step >= max(T_slow, T_comp + T_slow / 2): 1.33 where both are equal. Where computing is
  // shorter, two exchanges of delegates share the uplinks and the bound is not reached.
  EXPECT_NEAR(
      over_hierarchical(slow_uplinks(1), "ds-sync:pattern=bottleneck,delay=0,bucket=single"), 1.333,
      0.01);
}

TEST(DsSync, DelayHidesTheSlowLinkAltogether) {
  const Racks racks = slow_uplinks(0.25);
  const Simulation result =
      simulate_spec(racks.trace, racks.cluster, "ds-sync:pattern=bottleneck,delay=auto");
  EXPECT_LT(result.exposed_communication / result.iteration, 0.05);
  EXPECT_GT(over_hierarchical(racks, "ds-sync:pattern=bottleneck,delay=auto"), 4);
}

// Two racks, 32 workers, bound by the uplink: (2 * 31/32) / (2 * 1/2) = 1.9375, the published 94 %.
TEST(DsSync, NinetyFourPerCentOverARing) {
  const Trace trace = small_trace(1, 1'000'000, microseconds(10), microseconds(20));
  const Cluster cluster =
      parse_cluster("racks:2x16,inner=0us/1000Gbps,outer=0us/100Mbps,algorithm=ring");
  const Seconds ring = simulate_spec(trace, cluster, "bsp").iteration;
  const Seconds ours =
      simulate_spec(trace, cluster, "ds-sync:pattern=bottleneck,delay=0,bucket=single").iteration;
  EXPECT_NEAR(ring / ours, 1.9375, 0.01);
}

class EveryStrategy : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryStrategy, IsNeverFasterThanComputing) {
  const Trace trace = small_trace(6);
  for (const std::string where :
       {"flat:1,latency=50us,bandwidth=1Gbps", "flat:7,latency=50us,bandwidth=1Gbps",
        "sites:2x2x3,inner=20us/10Gbps,outer=200us/1Gbps,wan=5ms/100Mbps"}) {
    const Simulation result = simulate_spec(trace, parse_cluster(where), GetParam());
    EXPECT_GE(result.iteration, trace.compute() * (1 - 1e-9)) << where;
  }
}

TEST_P(EveryStrategy, SameSeedSameNumbers) {
  const Trace trace = small_trace(6);
  // Fast enough that computing, which the seed draws, decides how long a step takes.
  const Cluster cluster = parse_cluster(
      "racks:3x4,inner=20us/10Gbps,outer=200us/1Gbps,jitter=5%,straggle=5%*3,gamma=0.1ns");
  const Simulation one = simulate_spec(trace, cluster, GetParam(), {.seed = 5, .steps = 8});
  const Simulation two = simulate_spec(trace, cluster, GetParam(), {.seed = 5, .steps = 8});
  const Simulation other = simulate_spec(trace, cluster, GetParam(), {.seed = 6, .steps = 8});
  EXPECT_EQ(one.iteration, two.iteration);
  EXPECT_NE(one.iteration, other.iteration);
}

// As the planner tries them, and buckets that a small model fills.
std::vector<std::string> specs() {
  std::vector<std::string> list{"ddp:bucket=1MiB"};
  const StrategyTable table = StrategyTable::builtin();
  for (const StrategyInfo& info : table.all())
    std::ranges::move(info.specs(), std::back_inserter(list));
  return list;
}
INSTANTIATE_TEST_SUITE_P(Simulate, EveryStrategy, ::testing::ValuesIn(specs()),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::ranges::replace_if(
                               name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

TEST(Simulate, ASlowWorkerHoldsUpThoseWhoWaitForIt) {
  const Trace trace = small_trace();
  const Cluster healthy = parse_cluster("flat:8,latency=10us,bandwidth=100Gbps");
  const Cluster lame = parse_cluster("flat:8,latency=10us,bandwidth=100Gbps,slow=3*2");
  const double ratio =
      simulate_spec(trace, lame, "bsp").iteration / simulate_spec(trace, healthy, "bsp").iteration;
  EXPECT_NEAR(ratio, 2, 0.1);
}

TEST(Changes, ASlowerLinkAndASlowerWorkerTakeTheirTime) {
  const Trace trace = small_trace();
  const Cluster cluster = parse_cluster("racks:2x2,inner=10us/10Gbps,outer=10us/1Gbps");
  const auto steps = [&](const std::string& events) {
    return simulate_spec(trace, cluster, "bsp",
                         {.steps = 10, .changes = parse_changes(events, "test")})
        .iteration;
  };
  const Seconds calm = simulate_spec(trace, cluster, "bsp").iteration;
  // From the beginning, so that all ten steps are like those of the changed cluster.
  const Cluster slower = parse_cluster("racks:2x2,inner=10us/10Gbps,outer=10us/100Mbps");
  const Seconds expected = simulate_spec(trace, slower, "bsp:algorithm=two-level").iteration;
  EXPECT_NEAR(steps("at=0s,link=rack0,bandwidth=100Mbps") / expected, 1, 0.3);
  Cluster lame = cluster;
  lame.workers[1].slow = 2;
  EXPECT_EQ(steps("at=0s,worker=1,slow=2"),
            simulate_spec(trace, lame, "bsp", {.steps = 10, .warmup = 0}).iteration);
  // A step that has begun is not slowed: one of the ten.
  EXPECT_NEAR(steps("at=1ns,worker=1,slow=2") / (calm + trace.compute() * 0.9), 1, 0.005);
  // Others leave a tenth.
  EXPECT_EQ(steps("at=0s,link=rack0,load=900Mbps"), steps("at=0s,link=rack0,bandwidth=100Mbps"));
  EXPECT_EQ(steps("at=0s,link=rack*,load=900Mbps at=0s,link=rack*,load=0"), steps(""));
  // A cut of 100 ms costs 100 ms at most and something at least.
  const Seconds cut = steps("at=20ms,link=rack1,cut at=120ms,link=rack1,repair");
  EXPECT_GT(cut * 10, calm * 10 + milliseconds(50));
  EXPECT_LE(cut * 10, calm * 10 + milliseconds(100) * (1 + 1e-6));
}

TEST(Changes, BadOnesAreRefused) {
  for (const std::string bad :
       {"link=rack0,cut", "at=1s,cut", "at=1s,link=rack0", "at=1s,worker=1,cut",
        "at=1,worker=1,slow=2", "at=1s,worker=1,slow=0", "at=1s,link=rack0,worker=1,cut",
        "at=1s,link=rack0,speed=3", "at=1s,link=rack0,cut=yes", "at=1s,link=rack0,loss=101%",
        "at=1s,link=rack0,loss=0.1", "at=1s,worker=1,load=1Gbps", "at=1s,link=rack0,cut,repair"})
    EXPECT_THROW(parse_changes(bad, "test"), UsageError) << bad;
  const Cluster cluster = parse_cluster("racks:2x2,inner=10us/10Gbps,outer=10us/1Gbps");
  for (const std::string bad :
       {"at=1s,link=rack7,cut", "at=1s,worker=9,slow=2", "at=1s,link=site*,cut",
        "at=0s,link=rack0,loss=1%", "at=0s,link=rack0,jitter=1ms", "at=0s,link=rack0,load=2Gbps"})
    EXPECT_THROW(
        simulate_spec(small_trace(), cluster, "bsp", {.changes = parse_changes(bad, "test")}),
        UsageError)
        << bad;
  // A link that stays cut: an answer, not a hang.
  EXPECT_THROW(simulate_spec(small_trace(), cluster, "bsp",
                             {.changes = parse_changes("at=0s,link=rack0,cut", "test")}),
               UsageError);
}

TEST(Timeline, EventsOfAWorkerFollowEachOther) {
  Timeline timeline;
  simulate_spec(small_trace(), parse_cluster("flat:4,latency=50us,bandwidth=1Gbps"), "wfbp",
                {.steps = 2, .timeline = &timeline, .timeline_workers = 2});
  ASSERT_FALSE(timeline.events.empty());
  std::map<std::pair<int, int>, Seconds> until;
  for (const Event& event : timeline.events) {
    EXPECT_LT(event.rank, 2);
    EXPECT_LE(event.start, event.end);
    Seconds& end = until[{event.rank, event.kind == EventKind::exchange ? event.lane + 1 : 0}];
    EXPECT_GE(event.start, end - Seconds(1e-12)) << print(event);
    end = event.end;
  }
  EXPECT_EQ(timeline_from_json(to_json(timeline), "test"), timeline);
}

// Delegates take turns: a turn tells as much as all of them.
TEST(Simulate, ARotationTakesAsLongAsAPeriod) {
  for (const std::string spec : {"racks:2x3", "racks:3x4", "racks:4x8"})
    for (const std::string delay : {"0", "1", "3", "auto"}) {
      const Cluster cluster = parse_cluster(spec + ",inner=20us/10Gbps,outer=200us/300Mbps");
      const std::string strategy = "ds-sync:pattern=bottleneck,delay=" + delay;
      const Seconds turn = simulate_spec(small_trace(), cluster, strategy).iteration;
      const Seconds period =
          simulate(small_trace(), cluster, StrategyTable::builtin().make(strategy),
                   {.steps = 400, .warmup = 400})
              .iteration;
      EXPECT_NEAR(turn / period, 1, 1e-9) << spec << " delay " << delay;
    }
}

}  // namespace
}  // namespace riffle
