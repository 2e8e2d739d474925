// The rule of planning again on made-up windows: what alarms, when, and what does not.
#include "schedule/watch.h"

#include <gtest/gtest.h>

#include <cmath>

#include "riffle/random.h"

namespace riffle::schedule {
namespace {

class WatchTest : public testing::Test {
 protected:
  // A window of ten steps: computing 50 ms, exchanges 40 ms, each by its factor and with noise.
  std::optional<Watch::Alarm> look(double compute, double exchange, double sigma) {
    const auto noise = [&] { return std::exp(sigma * random_.normal()); };
    std::vector<Told> told;
    for (int rank = 0; rank < kWorkers; ++rank) {
      Seconds busy{};
      for (int step = 0; step < window_.steps; ++step)
        busy += milliseconds(50 * compute * noise()) / window_.steps;
      told.push_back({.busy = busy, .whole = busy + milliseconds(40 * exchange), .exchanges = {}});
      for (int step = 0; step < window_.steps; ++step)
        for (int lane = 0; lane < Watch::kLanes; ++lane)
          told.back().exchanges.push_back(lane == 0 ? milliseconds(40 * exchange * noise())
                                                    : Seconds{});
    }
    const auto alarm = watch_.look(window_, told, {*strategy_.strategy, world_, buckets_});
    window_.first += window_.steps;
    return alarm;
  }

  static constexpr int kWorkers = 8;
  Random random_{11};
  World world_{parse_cluster("racks:2x4,inner=1ms/1Gbps,outer=2ms/100Mbps")};
  NamedStrategy strategy_ = StrategyTable::builtin().make("wfbp");
  BucketPlan buckets_ =
      make_buckets({.model = "m", .layers = {{"a", 1000, {}, {}}}, .source = "made up"}, {1});
  Window window_{.first = 0, .steps = 10};
  Watch watch_{std::vector<double>(kWorkers, 1)};
};

TEST_F(WatchTest, ANoisyConstantRunNeverAlarms) {
  for (int i = 0; i < 10'000; ++i) ASSERT_FALSE(look(1, 1, 0.4)) << "window " << i;
}

TEST_F(WatchTest, ExchangesThatTakeLongerAreTheNetwork) {
  for (int i = 0; i < 20; ++i) ASSERT_FALSE(look(1, 1, 0.1));
  for (int i = 1; i < Usual::kWindows; ++i) EXPECT_FALSE(look(1, 2, 0.1));
  const auto alarm = look(1, 2, 0.1);
  ASSERT_TRUE(alarm && alarm->network);
  EXPECT_TRUE(alarm->network->crosses);
  EXPECT_NEAR(alarm->network->factor, 2, 0.3);
  EXPECT_FALSE(alarm->tempo || alarm->hosts);
}

TEST_F(WatchTest, WhoFindsNothingWaitsLonger) {
  for (int i = 0; i < 10; ++i) ASSERT_FALSE(look(1, 1, 0.05));
  int last = 0;
  std::vector<int> between;
  for (int i = 1; i < 100; ++i)
    if (look(1, 4, 0.05)) {
      between.push_back(i - last);
      last = i;
      watch_.measured(false);
    }
  ASSERT_GE(between.size(), 4U);
  for (std::size_t i = 2; i < between.size(); ++i) EXPECT_GT(between[i], between[i - 1]);
}

TEST_F(WatchTest, ComputingThatTakesLongerIsTheTempo) {
  for (int i = 0; i < 20; ++i) ASSERT_FALSE(look(1, 1, 0.1));
  for (int i = 1; i < Usual::kWindows; ++i) EXPECT_FALSE(look(2, 1, 0.1));
  const auto alarm = look(2, 1, 0.1);
  ASSERT_TRUE(alarm && alarm->tempo);
  EXPECT_NEAR(*alarm->tempo, 2, 0.3);
  EXPECT_FALSE(alarm->network || alarm->hosts);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(look(2, 1, 0.1)) << "it is usual now";
}

TEST(Watch, WindowsLastAsLongAsTheyShould) {
  EXPECT_EQ(Watch::steps_for(milliseconds(100), 20), 1);
  EXPECT_EQ(Watch::steps_for(milliseconds(50), 20), 2);
  EXPECT_EQ(Watch::steps_for(Seconds(5), 20), Watch::kLeastSteps);
  EXPECT_EQ(Watch::steps_for(milliseconds(1), 20), 20);
  EXPECT_EQ(Watch::steps_for(milliseconds(1), 1), 1);
}

}  // namespace
}  // namespace riffle::schedule
