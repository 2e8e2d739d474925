#include "riffle/random.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <map>

namespace riffle {
namespace {

using testing::ElementsAre;

// The 99.9 % point of the chi-square distribution (Wilson and Hilferty): with a fixed seed a fair
// generator passes always, an unfair one never.
double chi_square_limit(int freedom) {
  const double a = 2.0 / (9.0 * freedom);
  return freedom * std::pow(1 - a + 3.09 * std::sqrt(a), 3);
}

template <typename Counts>
double chi_square(const Counts& counts, double expected) {
  double sum = 0;
  for (const double count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

// The first outputs published with the reference implementation of SplitMix64, seed 1234567.
TEST(Random, ReproducesTheReferenceImplementation) {
  Random random(1234567);
  const std::array<std::uint64_t, 5> expected{6457827717110365317ULL, 3203168211198807973ULL,
                                              9817491932198370423ULL, 4593380528125082431ULL,
                                              16408922859458223821ULL};
  for (const std::uint64_t value : expected) EXPECT_EQ(random.next(), value);
}

// Written down once: programs of other releases and machines must draw the same.
TEST(Random, GivesTheSameNumbersForASeedForever) {
  EXPECT_THAT(Random(1).permutation(8), ElementsAre(4, 3, 2, 7, 5, 6, 0, 1));
  EXPECT_EQ(Random(7, 3).next(), 14174332285101100143ULL);
  EXPECT_EQ(Random(7, 3).below(1000), 143U);
  EXPECT_EQ(Random(7).uniform(), 0.3898297483912715);
  EXPECT_NEAR(Random(7).normal(), 0.9884743323187353, 1e-15);  // of the C library's log and cos
}

TEST(Random, IsUniformForBoundsThatDoNotDivideTheRange) {
  for (const int bound : {2, 3, 10, 97}) {
    Random random(42);
    std::vector<double> counts(static_cast<std::size_t>(bound));
    const int draws = 1000 * bound;
    for (int i = 0; i < draws; ++i) ++counts[random.below(static_cast<std::uint64_t>(bound))];
    EXPECT_LT(chi_square(counts, 1000), chi_square_limit(bound - 1)) << bound;
  }
}

TEST(Random, BelowHasNoModuloBias) {
  // Of 3 * 2^62 a plain remainder gives the first third twice as often as the others.
  Random random(5);
  const std::uint64_t third = std::uint64_t{1} << 62;
  std::array<double, 3> counts{};
  for (int i = 0; i < 30'000; ++i) ++counts[random.below(3 * third) / third];
  EXPECT_LT(chi_square(counts, 10'000), chi_square_limit(2));
}

TEST(Random, UniformFillsTheUnitInterval) {
  Random random(11);
  std::array<double, 100> counts{};
  for (int i = 0; i < 100'000; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    ++counts[static_cast<std::size_t>(value * 100)];
  }
  EXPECT_LT(chi_square(counts, 1000), chi_square_limit(99));
}

TEST(Random, NormalHasItsMoments) {
  Random random(3);
  double sum = 0;
  double squares = 0;
  int beyond = 0;
  const int draws = 100'000;
  for (int i = 0; i < draws; ++i) {
    const double value = random.normal();
    sum += value;
    squares += value * value;
    if (std::abs(value) > 1.959964) ++beyond;
  }
  EXPECT_NEAR(sum / draws, 0, 0.01);
  EXPECT_NEAR(squares / draws, 1, 0.015);
  EXPECT_NEAR(static_cast<double>(beyond) / draws, 0.05, 0.0025);
}

TEST(Random, ShuffleGivesEveryOrderEquallyOften) {
  Random random(9);
  std::map<std::vector<int>, double> counts;
  for (int i = 0; i < 24'000; ++i) ++counts[random.permutation(4)];
  ASSERT_EQ(counts.size(), 24U);
  std::vector<double> observed;
  for (const auto& [order, count] : counts) observed.push_back(count);
  EXPECT_LT(chi_square(observed, 1000), chi_square_limit(23));
}

TEST(Random, StreamsDiffer) {
  // Neighbouring seeds and streams must not repeat each other's numbers.
  std::map<std::uint64_t, int> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    for (std::uint64_t stream = 0; stream < 100; ++stream) ++seen[Random(seed, stream).next()];
  EXPECT_EQ(seen.size(), 10'000U);
}

}  // namespace
}  // namespace riffle
