#include "converge/shards.h"

#include <gtest/gtest.h>

#include <set>

#include "refusal.h"

namespace riffle::convergence {
namespace {

std::vector<int> labels(int count, int classes) {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) all.push_back(i % classes);
  return all;
}

TEST(Shards, AnEpochDealsEverySampleOnce) {
  Shards shards(labels(640, 10), 8, 4, 0, 1);
  EXPECT_EQ(shards.epoch(), 20);
  for (const Step first : {0, 20}) {
    std::multiset<int> seen;
    for (Step step = first; step < first + 20; ++step)
      for (int worker = 0; worker < 8; ++worker)
        for (const int sample : shards.batch(worker, step)) seen.insert(sample);
    EXPECT_EQ(seen.size(), 640U);
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 640U);
  }
  const auto first = shards.batch(0, 0);
  const std::vector<int> before(first.begin(), first.end());
  const auto again = shards.batch(0, 20);
  EXPECT_NE(before, std::vector<int>(again.begin(), again.end()));
}

TEST(Shards, UnevenShardsAreOfOneSizeAndHaveNoSampleTwice) {
  Shards shards(labels(2000, 10), 8, 10, 0.3, 1);
  for (const auto& each : shards.owned()) {
    EXPECT_EQ(each.size(), 250U);
    EXPECT_EQ(std::set<int>(each.begin(), each.end()).size(), 250U);
  }
  for (Step step = 0; step < 3 * shards.epoch(); ++step)
    for (const int sample : shards.batch(3, step))
      EXPECT_TRUE(std::ranges::count(shards.owned()[3], sample));
}

// A shard is no larger than a class, so none is ever used up: also the last worker has its shares.
TEST(Shards, ClassesComeByTheSharesThatWereDrawn) {
  const auto of = labels(40'000, 4);
  const Shards shards(of, 4, 10, 0.5, 9);
  const auto shares = class_shares(4, 4, 0.5, 9);
  for (std::size_t w = 0; w < shares.size(); ++w)
    for (int c = 0; c < 4; ++c) {
      const auto& own = shards.owned()[w];
      const auto count = std::ranges::count_if(own, [&](int sample) { return of[sample] == c; });
      EXPECT_NEAR(static_cast<double>(count) / static_cast<double>(own.size()), shares[w][c], 0.02);
    }
}

// The mean over workers of the largest class's share: one where each has one class only.
double largest_share(double alpha) {
  const auto of = labels(20'000, 10);
  const Shards shards(of, 20, 10, alpha, 4);
  double mean = 0;
  for (const auto& each : shards.owned()) {
    std::vector<double> counts(10);
    for (const int sample : each) counts[of[sample]] += 1;
    mean += *std::ranges::max_element(counts) / static_cast<double>(each.size()) / 20;
  }
  return mean;
}

TEST(Shards, TheSmallerAlphaTheMoreTheyDiffer) {
  EXPECT_GT(largest_share(0.05), 0.55);
  EXPECT_GT(largest_share(0.3), 0.3);
  EXPECT_LT(largest_share(0.3), largest_share(0.05));
  EXPECT_LT(largest_share(1000), 0.13);
}

TEST(Shards, TooFewSamplesAreRefused) {
  EXPECT_THAT(refusal([] { Shards(labels(30, 3), 8, 4, 0, 1); }), testing::HasSubstr("need 32"));
}

TEST(Shards, SharesAddUpToOneAndHaveTheRightMean) {
  const auto shares = class_shares(4000, 4, 0.5, 9);
  double first = 0;
  for (const auto& each : shares) {
    EXPECT_NEAR(each[0] + each[1] + each[2] + each[3], 1, 1e-12);
    first += each[0] / 4000;
  }
  EXPECT_NEAR(first, 0.25, 0.02);
}

}  // namespace
}  // namespace riffle::convergence
