// When times of exchanges and of hosts count as changed: made-up times, no clock.
#include "schedule/drift.h"

#include <gtest/gtest.h>

#include <functional>

#include "riffle/random.h"
#include "schedule/pace.h"

namespace riffle::schedule {
namespace {

// A window of 3x3 workers on a grid: rows and columns in turn.
std::vector<ExchangeTime> grid_window(const std::function<Seconds(const Group&)>& time) {
  std::vector<ExchangeTime> window;
  for (int step = 0; step < 20; ++step)
    for (int i = 0; i < 3; ++i) {
      const Group group =
          step % 2 == 0 ? Group{3 * i, 3 * i + 1, 3 * i + 2} : Group{i, i + 3, i + 6};
      window.push_back({group, false, time(group)});
    }
  return window;
}

Seconds usual(const Group& /*group*/) {
  return milliseconds(10);
}

// A drift that has learned what is usual.
Drift learned() {
  Drift drift;
  for (int i = 0; i < Usual::kLearned; ++i) EXPECT_FALSE(drift.look(grid_window(usual)));
  return drift;
}

// All but the last window that a change must show in.
void almost(Drift& drift, const std::function<Seconds(const Group&)>& time,
            int windows = Usual::kWindows) {
  for (int i = 1; i < windows; ++i) EXPECT_FALSE(drift.look(grid_window(time)));
}
// What is as far off as this counts twice.
constexpr int kGreat = 2;

TEST(Drift, AChangeMustShowInARow) {
  Drift drift = learned();
  for (int i = 0; i < 30; ++i) EXPECT_FALSE(drift.look(grid_window(usual)));
  const auto slow = [](const Group&) { return milliseconds(16); };
  almost(drift, slow);
  EXPECT_FALSE(drift.look(grid_window(usual)));
  almost(drift, slow);
  const auto seen = drift.look(grid_window(slow));
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->ranks.size(), 9);
  EXPECT_NEAR(seen->factor, 1.6, 1e-9);
}

TEST(Drift, FasterCountsToo) {
  Drift drift = learned();
  const auto fast = [](const Group&) { return milliseconds(2); };
  almost(drift, fast, kGreat);
  const auto seen = drift.look(grid_window(fast));
  ASSERT_TRUE(seen);
  EXPECT_NEAR(seen->factor, 0.2, 1e-9);
  drift.forget();
  EXPECT_FALSE(drift.look(grid_window(fast)));
  EXPECT_FALSE(drift.look(grid_window(fast)));
  EXPECT_FALSE(drift.look(grid_window(fast)));
}

TEST(Drift, OneSlowHostIsEnough) {
  Drift drift = learned();
  const auto slow = [](const Group& group) {
    return group.contains(4) ? milliseconds(40) : milliseconds(10);
  };
  almost(drift, slow, kGreat);
  const auto seen = drift.look(grid_window(slow));
  ASSERT_TRUE(seen);
  // With its row and its column.
  EXPECT_EQ(print(seen->ranks), "{1 3 4 5 7}");
}

TEST(Drift, NoiseAndTriflesDoNotCount) {
  Drift drift;
  Random random(3);
  const auto noisy = [&](const Group&) { return milliseconds(10 * random.uniform(0.8, 1.4)); };
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(drift.look(grid_window(noisy)));
  Drift small;
  const auto tiny = [&](const Group&) { return microseconds(20 * random.uniform(0.5, 4)); };
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(small.look(grid_window(tiny)));
}

TEST(Drift, LinksThatAlwaysDifferDoNotCount) {
  Drift drift;
  const auto columns_slow = [](const Group& group) {
    return milliseconds(group.ranks()[1] - group.ranks()[0] == 3 ? 40 : 2);
  };
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(drift.look(grid_window(columns_slow)));
}

TEST(Drift, WhatCrossesIsJudgedAsAWhole) {
  Drift drift;
  // Another pair of delegates in each window, or none.
  const auto window = [](int turn, Seconds time) {
    return std::vector<ExchangeTime>{{Group{turn % 3, 3 + turn % 3}, true, time}};
  };
  for (int turn = 0; turn < Usual::kLearned; ++turn)
    EXPECT_FALSE(drift.look(window(turn, milliseconds(turn % 2 == 0 ? 10 : 11))));
  for (int turn = 1; turn < kGreat; ++turn)
    EXPECT_FALSE(drift.look(window(turn, milliseconds(30))));
  EXPECT_FALSE(drift.look({}));
  const auto seen = drift.look(window(3, milliseconds(30)));
  ASSERT_TRUE(seen);
  EXPECT_TRUE(seen->crosses);
  EXPECT_TRUE(seen->ranks.empty());
}

// Two racks of two: of four steps two cross alone, one shares the uplink, one is short. Windows of
// one step, so that each sees another phase.
TEST(Drift, ARhythmIsNoNoise) {
  constexpr int kPeriod = 4;
  constexpr int kFall = (Phases::kLearned + 2) * kPeriod;
  const std::vector<double> rhythm{80, 670, 490, 250};
  Random random(7);
  Drift drift;
  const auto look = [&](int step, double factor) {
    const int phase = step % kPeriod;
    const double time = factor * rhythm[static_cast<std::size_t>(phase)] * random.uniform(1, 1.1);
    return drift.look({{Group{phase % 2, 2 + phase % 2}, true, milliseconds(time), phase}});
  };
  for (int step = 0; step < kFall; ++step) EXPECT_FALSE(look(step, 1)) << step;
  for (int step = kFall; step < kFall + Usual::kWindows - 1; ++step) EXPECT_FALSE(look(step, 2));
  const auto seen = look(kFall + Usual::kWindows - 1, 2);
  ASSERT_TRUE(seen);
  EXPECT_TRUE(seen->crosses);
  EXPECT_NEAR(seen->factor, 2, 0.3);
}

// Four workers meet in pairs, of two partners in turn, and only the links of one partner become
// slow. Windows of one step see it and do not, in turn.
TEST(Drift, SlowLinksOfOnePhaseAreNoNoise) {
  constexpr int kFall = 16;
  Random random(5);
  Drift drift;
  const auto look = [&](int step, double factor) {
    const int phase = step % 2;
    const Seconds time = milliseconds((phase == 1 ? factor : 1) * 10 * random.uniform(1, 1.1));
    const Group first = phase == 0 ? Group{0, 1} : Group{0, 2};
    const Group second = phase == 0 ? Group{2, 3} : Group{1, 3};
    return drift.look({{first, false, time, phase}, {second, false, time, phase}});
  };
  for (int step = 0; step < kFall; ++step) EXPECT_FALSE(look(step, 1)) << step;
  std::optional<Drift::Seen> seen;
  int step = kFall;
  while (!seen && step < kFall + 20) seen = look(step++, 4);
  ASSERT_TRUE(seen);
  EXPECT_LE(step, kFall + 2 * Usual::kWindows);
  EXPECT_EQ(seen->ranks.size(), 4);
  EXPECT_GT(seen->factor, 2);
  // What is always so is no change.
  Drift constant;
  std::swap(drift, constant);
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(look(i, 4)) << i;
}

std::vector<Seconds> busy(double third) {
  return {milliseconds(10), milliseconds(11), milliseconds(third), milliseconds(9)};
}

TEST(Pace, SlowAndBack) {
  Pace pace(std::vector<double>(4, 1.0));
  const std::vector<Seconds> whole(4, milliseconds(50));
  EXPECT_FALSE(pace.look(busy(40), whole));
  EXPECT_FALSE(pace.look(busy(12), whole));
  EXPECT_FALSE(pace.look(busy(40), whole));
  EXPECT_TRUE(pace.look(busy(44), whole));
  EXPECT_NEAR(pace.factors()[2], 4, 1e-9);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(pace.look(busy(20), whole)) << "between the two";
  EXPECT_FALSE(pace.look(busy(12), whole));
  EXPECT_TRUE(pace.look(busy(12), whole));
  EXPECT_EQ(pace.factors(), std::vector<double>(4, 1.0));
}

TEST(Pace, WhatIsLittleOfAStepDoesNotCount) {
  Pace pace(std::vector<double>(4, 1.0));
  for (int i = 0; i < 5; ++i)
    EXPECT_FALSE(pace.look(busy(40), std::vector<Seconds>(4, milliseconds(200))));
  const std::vector<Seconds> tiny{microseconds(10), microseconds(12), microseconds(500),
                                  microseconds(11)};
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(pace.look(tiny, tiny));
}

}  // namespace
}  // namespace riffle::schedule
