#include "strategies/grouping.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace riffle {
namespace {

Group first(int n) {
  return Membership::all(n).ranks;
}

TEST(Grouping, DefaultGroupIsADivisorNearTheRoot) {
  const std::map<int, int> expected{{1, 1},  {2, 2},  {3, 3},    {4, 2},    {5, 2},
                                    {6, 2},  {7, 3},  {8, 2},    {9, 3},    {12, 3},
                                    {14, 2}, {16, 4}, {22, 5},   {27, 3},   {32, 4},
                                    {33, 3}, {64, 8}, {100, 10}, {127, 11}, {256, 16}};
  for (const auto& [n, group] : expected) EXPECT_EQ(default_group(n), group) << n;
}

TEST(Grouping, CutsDifferByOneAtMost) {
  EXPECT_EQ(print(cut(first(7).ranks(), 3)), "{0 1 2} {3 4} {5 6}");
  for (int n = 1; n <= 40; ++n)
    for (int about = 2; about <= n; ++about) {
      const int count = group_count(n, about);
      const Partition groups = cut(first(n).ranks(), count);
      validate(groups, first(n));
      EXPECT_LE(groups.front().size() - groups.back().size(), 1);
      EXPECT_GE(groups.back().size(), std::min(n, 2)) << n << " about " << about;
    }
}

TEST(Grouping, RadicesMultiplyToN) {
  EXPECT_EQ(radices(16, 4), (std::vector{4, 4}));
  EXPECT_EQ(radices(27, 3), (std::vector{3, 3, 3}));
  EXPECT_EQ(radices(12, 3), (std::vector{3, 4}));
  EXPECT_EQ(radices(32, 4), (std::vector{4, 4, 2}));
  EXPECT_EQ(radices(14, 2), (std::vector{2, 7}));
  EXPECT_EQ(radices(5, 8), std::vector{5});
  EXPECT_TRUE(radices(13, 4).empty());       // prime
  EXPECT_TRUE(radices(2 * 89, 13).empty());  // 89 is no group of about 13
}

TEST(Grouping, DigitRoundsChangeOneDigit) {
  const auto rounds = digit_rounds(first(8), 2);
  ASSERT_EQ(rounds.size(), 3U);
  EXPECT_EQ(print(rounds[0]), "{0 1} {2 3} {4 5} {6 7}");
  EXPECT_EQ(print(rounds[1]), "{0 2} {1 3} {4 6} {5 7}");
  EXPECT_EQ(print(rounds[2]), "{0 4} {1 5} {2 6} {3 7}");
}

TEST(Grouping, RiffledRoundsOfAPrimeArePartitions) {
  for (const int n : {5, 7, 11, 13, 31, 127})
    for (int g = 2; g * g <= 2 * n; ++g) {
      const auto rounds = digit_rounds(first(n), g);
      EXPECT_EQ(static_cast<double>(rounds.size()), std::ceil(std::log(n) / std::log(g) - 1e-9));
      for (const Partition& groups : rounds) validate(groups, first(n));
    }
}

TEST(Grouping, GridsHaveRowsAndColumns) {
  const auto six = grid_rounds(first(6));
  EXPECT_EQ(print(six[0]), "{0 1 2} {3 4 5}");
  EXPECT_EQ(print(six[1]), "{0 3} {1 4} {2 5}");
  const auto five = grid_rounds(first(5));
  EXPECT_EQ(print(five[0]), "{0 1 2} {3 4}");
  EXPECT_EQ(print(five[1]), "{0 3} {1 4} {2}");
  EXPECT_EQ(grid_rounds(first(3)).size(), 1U);
}

TEST(Grouping, RandomGroupsAreDrawnUniformly) {
  // How often each pair meets in 16 workers of groups of 4: 3/15 of the draws.
  constexpr int kDraws = 4000;
  std::vector<int> met(16 * 16, 0);
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    const Partition groups = random_groups(first(16), 4, 5, draw);
    validate(groups, first(16));
    for (const Group& group : groups)
      for (const Rank a : group)
        for (const Rank b : group) ++met[a * 16 + b];
  }
  const double expected = kDraws * 3.0 / 15;
  const double deviation = std::sqrt(expected * (1 - 3.0 / 15));
  for (int a = 0; a < 16; ++a)
    for (int b = 0; b < a; ++b) EXPECT_NEAR(met[a * 16 + b], expected, 5 * deviation);
}

}  // namespace
}  // namespace riffle
