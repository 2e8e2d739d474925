// dear and asc-wfbp: halves and lanes.
#include <gtest/gtest.h>

#include <cmath>

#include "riffle/random.h"
#include "strategies/merge.h"
#include "support/programs.h"

namespace riffle::test {
namespace {

TEST(Dear, ScattersInBackwardOrderAndGathersInForwardOrder) {
  const Program program = test::program("dear:bucket=4MB", 0, flat(4));
  ASSERT_EQ(program.exchanges.size(), 6U);
  const int order[] = {0, 1, 2, 2, 1, 0};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(program.exchanges[i].bucket, order[i]);
    EXPECT_EQ(program.exchanges[i].collective,
              i < 3 ? Collective::reduce_scatter : Collective::all_gather);
  }
}

// Exposed time of dear by its definition, written down independently of the recurrences: backward,
// then all first halves done, then second halves front layers first with forward behind each.
double dear_time(const std::vector<ReadyLayer>& layers, const std::vector<Seconds>& needed,
                 const std::vector<int>& layers_each, const Curve& first, const Curve& second) {
  std::vector<Bytes> bytes;
  std::vector<double> ready;
  std::vector<double> forward;  // of each bucket alone
  std::size_t at = 0;
  double before = 0;
  for (const int count : layers_each) {
    bytes.emplace_back();
    for (int i = 0; i < count; ++i) bytes.back() += layers[at++].bytes;
    ready.push_back(layers[at - 1].ready.count());
    forward.push_back(needed[at - 1].count() - before);
    before = needed[at - 1].count();
  }
  double lane = 0;
  for (std::size_t b = 0; b < bytes.size(); ++b)
    lane = std::max(lane, ready[b]) + first(bytes[b]).count();
  double compute = lane;
  for (std::size_t b = bytes.size(); b-- > 0;) {
    lane += second(bytes[b]).count();
    compute = std::max(compute, lane) + forward[b];
  }
  return compute;
}

TEST(Dear, OptimalSplitEqualsBruteForce) {
  Random random(3);
  for (int run = 0; run < 200; ++run) {
    const int count = 1 + static_cast<int>(random.below(11));
    std::vector<ReadyLayer> layers;
    std::vector<Seconds> needed;
    Seconds ready{};
    Seconds forward{};
    for (int i = 0; i < count; ++i) {
      ready += Seconds(std::exp(random.uniform(-9, -5)));
      forward += Seconds(std::exp(random.uniform(-10, -5)));
      layers.push_back({ready, Bytes{1 + static_cast<std::int64_t>(random.below(4'000'000))}});
      needed.push_back(forward);
    }
    const Curve first(LinearCost{Seconds(std::exp(random.uniform(-11, -6))),
                                 {std::exp(random.uniform(-23, -19))}});
    const Curve second(LinearCost{Seconds(std::exp(random.uniform(-11, -6))),
                                  {std::exp(random.uniform(-23, -19))}});
    double best = 1e9;
    for (unsigned cuts = 0; cuts < 1U << (count - 1); ++cuts) {
      std::vector<int> layers_each{1};
      for (int i = 0; i + 1 < count; ++i)
        if ((cuts >> i) & 1)
          layers_each.push_back(1);
        else
          ++layers_each.back();
      best = std::min(best, dear_time(layers, needed, layers_each, first, second));
    }
    const auto found = merge_split(layers, needed, first, second);
    EXPECT_NEAR(dear_time(layers, needed, found, first, second), best, 1e-12) << run;
  }
}

TEST(Dear, ThousandsOfLayersAreJoinedFirst) {
  const Trace model = trace(5000, 1000);
  const auto plan = buckets(make("dear:bucket=optimal"), flat(8), model);
  EXPECT_EQ(plan.back().first, 0);
  EXPECT_EQ(plan.front().last, 4999);
}

TEST(AscWfbp, UsesTwoLanes) {
  const World world(parse_cluster("flat:8,latency=100us,bandwidth=1Gbps"));
  const NamedStrategy strategy = make("asc-wfbp");
  const Program program = strategy->program(0, world, buckets(strategy, world, trace(8)));
  ASSERT_GT(program.exchanges.size(), 2U);
  for (const Exchange& exchange : program.exchanges) EXPECT_EQ(exchange.lane, exchange.bucket % 2);
}

TEST(AscWfbp, MergesOnlyWhenBothLanesAreBusy) {
  // A message takes 10 ms and a layer is ready every 1 ms: the first two start at once, and those
  // that follow wait together until a lane is free.
  std::vector<ReadyLayer> layers;
  for (int i = 1; i <= 8; ++i) layers.push_back({milliseconds(i), Bytes{1000}});
  EXPECT_EQ(merge_two_lanes(layers, {milliseconds(10), {}}), (std::vector{1, 1, 6}));
  EXPECT_EQ(merge_two_lanes(layers, {milliseconds(1.5), {}}), std::vector<int>(8, 1));
}

}  // namespace
}  // namespace riffle::test
