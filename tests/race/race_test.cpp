// race.json reads back as it was written; who is ahead of whom.
#include "race/race.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "refusal.h"

namespace riffle::race {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result a_result() {
  return {.contender = "sesgd:group=2",
          .how = "in a lab",
          .rank = 1,
          .steps = 40,
          .seconds_per_step = 0.025,
          .exposed = 0.004,
          .hidden = 0.011,
          .compute = 0.021,
          .predicted = Prediction{0.024, 0.021, 0.003},
          .final_loss = 0.125,
          .accuracy = 0.972,
          .seconds_to_target = 1.0,
          .speedup = 3.5,
          .curve = {{0.5, 1.0}, {2.25, 0.125}, {20, 40}},
          .evaluations = {{20, 0.5, 0.8}, {40, 1.0, 0.972}},
          .groups = std::vector<Groups>{{{0, 1}, {2, 3}}, {{0, 2}, {1, 3}}, {}},
          .timeline = {{"seconds", 0.025}, {"events", Json::array()}},
          .timeline_file = "sesgd_group=2.perfetto.json"};
}

Race a_race() {
  return {.command = "riffle race --cluster 'a b'",
          .cluster = "racks:2x2,inner=1ms/1Gbps,outer=1ms/100Mbps",
          .topology = parse_cluster("racks:2x2,inner=1ms/1Gbps,outer=1ms/100Mbps"),
          .dilate = 4,
          .shrink = 2,
          .task = "digits",
          .target = 0.97,
          .seed = 7,
          .events = "at=1s,link=rack0,cut",
          .interrupted = true,
          .results = {a_result(), {.contender = "torch-ddp", .failed = "rank 1 was killed"}}};
}

TEST(RaceJson, ReadsBack) {
  const Race race = a_race();
  EXPECT_EQ(race_from_json(to_json(race), "race.json"), race);
}

TEST(RaceJson, IgnoresWhatItDoesNotKnowAndTakesNullForAbsent) {
  std::string text = to_json(a_race());
  text.insert(text.find("\"command\""), "\"later\": [1, 2], ");
  EXPECT_EQ(race_from_json(text, "race.json"), a_race());
}

TEST(RaceJson, RefusesWithFileAndField) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = to_json(a_race());
    text.replace(text.find(from), from.size(), to);
    return refusal([&] { race_from_json(text, "race.json"); });
  };
  EXPECT_THAT(with("\"dilate\": 4.0", "\"dilate\": 0"), HasSubstr("race.json: dilate"));
  EXPECT_THAT(with("\"contender\"", "\"name\""), HasSubstr("results[0]"));
  EXPECT_THAT(with("\"riffle\": \"race\"", "\"riffle\": \"plan\""), HasSubstr("race"));
  EXPECT_THAT(with("2.25,", ""), HasSubstr("curve"));
  EXPECT_THAT(refusal([] { race_from_json("{", "race.json"); }), HasSubstr("race.json"));
}

std::vector<std::string> order_of(const Race& race) {
  std::vector<std::string> names;
  for (const Result* result : in_order(race)) names.push_back(result->contender);
  return names;
}

TEST(Ranking, ByTheTimeToTheTarget) {
  Race race{.target = 0.9};
  race.results = {{.contender = "slow", .seconds_per_step = 1, .seconds_to_target = 20},
                  {.contender = "failed", .failed = "why", .seconds_to_target = 1},
                  {.contender = "never", .seconds_per_step = 0.1, .accuracy = 0.8},
                  {.contender = "nearly", .seconds_per_step = 9, .accuracy = 0.89},
                  {.contender = "fast", .seconds_per_step = 2, .seconds_to_target = 5}};
  rank_results(race);
  EXPECT_THAT(order_of(race), ElementsAre("fast", "slow", "nearly", "never", "failed"));
  EXPECT_EQ(race.results[4].rank, 1);
  EXPECT_EQ(race.results[1].rank, 0);
  EXPECT_EQ(race.results[4].speedup, 4.0);
  EXPECT_EQ(race.results[0].speedup, 1.0);
  EXPECT_EQ(race.results[2].speedup, std::nullopt);
}

TEST(Ranking, WithoutATargetByTheTimeOfAStep) {
  Race race;
  race.results = {{.contender = "b", .seconds_per_step = 2},
                  {.contender = "a", .seconds_per_step = 1}};
  rank_results(race);
  EXPECT_THAT(order_of(race), ElementsAre("a", "b"));
  EXPECT_EQ(race.results[1].speedup, 2.0);
}

TEST(Ranking, AFirstContenderThatFailedIsNoMeasure) {
  Race race;
  race.results = {{.contender = "b", .failed = "why", .seconds_per_step = 2},
                  {.contender = "a", .seconds_per_step = 1}};
  rank_results(race);
  EXPECT_EQ(race.results[1].speedup, std::nullopt);
  EXPECT_EQ(race.results[1].rank, 1);
}

}  // namespace
}  // namespace riffle::race
