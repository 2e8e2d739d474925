// When a number that comes window by window counts as changed: made-up values, no clock.
#include "schedule/usual.h"

#include <gtest/gtest.h>

#include <cmath>

#include "riffle/random.h"

namespace riffle::schedule {
namespace {

struct Noise {
  std::string name;
  std::function<double(Random&)> factor;
};

// Of one window.
const std::vector<Noise> kNoises{
    {"none", [](Random&) { return 1.0; }},
    {"even", [](Random& random) { return random.uniform(0.6, 1.4); }},
    {"little", [](Random& random) { return std::exp(0.1 * random.normal()); }},
    {"much", [](Random& random) { return std::exp(0.4 * random.normal()); }},
    {"in turns", [turn = 0](Random&) mutable { return ++turn % 2 == 0 ? 1.0 : 8.0; }},
    {"outliers", [](Random& random) { return random.uniform() < 0.003 ? 5.0 : 1.0; }},
};

TEST(Usual, ANoisyNumberThatStaysNeverAlarms) {
  for (const Noise& noise : kNoises)
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Random random(seed);
      Usual up(Usual::Way::up);
      Usual down(Usual::Way::down);
      int alarms = 0;
      for (int window = 0; window < 10'000; ++window) {
        const Seconds value = milliseconds(20 * noise.factor(random));
        alarms += up.look(value) ? 1 : 0;
        alarms += down.look(value) ? 1 : 0;
      }
      EXPECT_EQ(alarms, 0) << noise.name << ", seed " << seed;
    }
}

// Twice as much, and half: in the third window after it, however long it was calm before. Four
// times as much: in the second.
TEST(Usual, AChangeAlarmsInTheThirdWindowAndAGreatOneInTheSecond) {
  for (const double sigma : {0.0, 0.02, 0.05})
    for (const int before : {Usual::kLearned, 40, 2000})
      for (const double factor : {1.9, 4.0, 1 / 1.9, 0.25}) {
        Random random(7);
        Usual usual(factor > 1 ? Usual::Way::up : Usual::Way::down);
        const auto next = [&](double by) {
          return usual.look(milliseconds(20 * by * std::exp(sigma * random.normal())));
        };
        for (int i = 0; i < before; ++i) ASSERT_FALSE(next(1));
        const bool great = std::abs(std::log(factor)) > 2 * std::log(Usual::kFactor);
        for (int i = 1; i < (great ? 2 : Usual::kWindows); ++i) EXPECT_FALSE(next(factor));
        const auto seen = next(factor);
        ASSERT_TRUE(seen) << sigma << " " << before << " " << factor;
        EXPECT_NEAR(std::log(*seen / factor), 0, 4 * sigma + 1e-9);
      }
}

// A number that leaps for a window now and then is given a third one.
TEST(Usual, WhatLeapsAndComesBackIsGivenTime) {
  Usual usual(Usual::Way::up);
  const auto next = [&](double factor) { return usual.look(milliseconds(20 * factor)); };
  for (int i = 0; i < 40; ++i) ASSERT_FALSE(next(1));
  EXPECT_FALSE(next(5));
  for (int i = 0; i < 100; ++i) ASSERT_FALSE(next(1));
  EXPECT_FALSE(next(5));
  EXPECT_FALSE(next(5));
  EXPECT_TRUE(next(5));
}

TEST(Usual, OnlyWhatIsFarOffCountsAtTheBeginning) {
  Usual usual(Usual::Way::up);
  for (int i = 0; i < Usual::kFew; ++i) EXPECT_FALSE(usual.look(milliseconds(10)));
  for (int i = 0; i < Usual::kWindows; ++i) EXPECT_FALSE(usual.look(milliseconds(25)));
  Usual other(Usual::Way::up);
  for (int i = 0; i < Usual::kFew; ++i) EXPECT_FALSE(other.look(milliseconds(10)));
  for (int i = 1; i < Usual::kWindows; ++i) EXPECT_FALSE(other.look(milliseconds(40)));
  EXPECT_TRUE(other.look(milliseconds(40)));
}

// What creeps is compared with what it was, not with the day before.
TEST(Usual, CreepingCounts) {
  Usual usual(Usual::Way::up);
  double value = 10;
  int windows = 0;
  while (!usual.look(milliseconds(value)) && windows < 1000) {
    value *= 1.01;
    ++windows;
  }
  EXPECT_LT(windows, 150);
}

TEST(Usual, TriflesDoNotCount) {
  Usual usual(Usual::Way::up);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(usual.look(microseconds(10)));
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(usual.look(microseconds(100)));
}

}  // namespace
}  // namespace riffle::schedule
