// Two files side by side.
#include "race/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "race/race.h"
#include "refusal.h"
#include "riffle/load.h"
#include "riffle/simulate.h"

namespace riffle::race {
namespace {

using testing::HasSubstr;

std::string race_of(double wfbp, double sesgd, std::optional<double> target = {}) {
  Race race{.topology = parse_cluster("flat:4,latency=1ms,bandwidth=1Gbps"),
            .trace = "resnet50",
            .target = target};
  race.results = {{.contender = "wfbp", .seconds_per_step = wfbp, .seconds_to_target = 10 * sesgd},
                  {.contender = "sesgd", .seconds_per_step = sesgd, .seconds_to_target = 10 * wfbp},
                  {.contender = "dear", .failed = "rank 1 was killed"}};
  return to_json(race);
}

TEST(Compare, RatiosAndChangesOfRank) {
  const auto found = compare(read_times(race_of(2, 1), "a"), read_times(race_of(2, 3), "b"));
  ASSERT_EQ(found.contenders.size(), 3U);
  EXPECT_EQ(found.contenders[0].ratio(), 1.0);
  EXPECT_EQ(found.contenders[0].moved(), 1);
  EXPECT_EQ(found.contenders[1].ratio(), 3.0);
  EXPECT_EQ(found.contenders[1].moved(), -1);
  EXPECT_EQ(found.contenders[2].ratio(), std::nullopt);
  EXPECT_EQ(found.contenders[2].first.note, "failed");
}

TEST(Compare, TwoRacesToATargetByTheTimeToIt) {
  const auto found =
      compare(read_times(race_of(2, 1, 0.9), "a"), read_times(race_of(4, 1, 0.9), "b"));
  EXPECT_EQ(found.what, "time to the target accuracy");
  EXPECT_EQ(found.contenders[1].ratio(), 2.0);
}

TEST(Compare, ASimulationMatchesTheSpecWithItsOptions) {
  const Trace trace = load_trace("resnet50");
  const Cluster cluster = parse_cluster("flat:4,latency=1ms,bandwidth=1Gbps");
  const auto table = StrategyTable::builtin();
  Race race{.topology = cluster};
  race.results = {{.contender = "sesgd:group=4", .seconds_per_step = 1},
                  {.contender = "sesgd:group=2", .seconds_per_step = 2}};
  const std::string simulated = to_json(simulate(trace, cluster, table.make("sesgd:group=2")));
  const auto found = compare(read_times(simulated, "s"), read_times(to_json(race), "r"));
  ASSERT_EQ(found.contenders.size(), 1U);
  EXPECT_EQ(found.contenders[0].contender, "sesgd:group=2");
  EXPECT_EQ(found.contenders[0].second.seconds, 2.0);
}

TEST(Compare, RefusesOtherFiles) {
  EXPECT_THAT(refusal([] { read_times("[1]", "a.json"); }), HasSubstr("a.json"));
  EXPECT_THAT(refusal([] { read_times("{\"results\": [{}]}", "a.json"); }),
              HasSubstr("results[0]"));
  Race other{.topology = parse_cluster("flat:4,latency=1ms,bandwidth=1Gbps")};
  other.results = {{.contender = "gossip", .seconds_per_step = 1}};
  EXPECT_THAT(
      refusal([&] { compare(read_times(race_of(1, 1), "a"), read_times(to_json(other), "b")); }),
      HasSubstr("in common"));
}

}  // namespace
}  // namespace riffle::race
