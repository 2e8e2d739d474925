#include <gtest/gtest.h>

#include "riffle/error.h"
#include "strategies/bottleneck.h"
#include "support/programs.h"

namespace riffle::test {
namespace {

const std::string kDelegates = "ds-sync:pattern=bottleneck,delay=0,bucket=single";

TEST(DsSync, GridAlternatesRowsAndColumns) {
  EXPECT_EQ(groups("ds-sync:pattern=grid", 0, flat(6)), "{0 1 2} {3 4 5}");
  EXPECT_EQ(groups("ds-sync:pattern=grid", 1, flat(6)), "{0 3} {1 4} {2 5}");
}

TEST(DsSync, DelegatesRotate) {
  const World world = racks("2x4");
  EXPECT_EQ(groups(kDelegates, 0, world), "{0 4} {1 2 3} {5 6 7}");
  EXPECT_EQ(groups(kDelegates, 1, world), "{0 2 3} {1 5} {4 6 7}");
  EXPECT_EQ(groups(kDelegates, 4, world), groups(kDelegates, 0, world));
  EXPECT_EQ(make(kDelegates)->traits(world).period, 4);
}

TEST(DsSync, RacksOfDifferentSizes) {
  const World world = without(racks("2x4"), {6, 7});
  EXPECT_EQ(groups(kDelegates, 0, world), "{0 4} {1 2 3} {5}");
  EXPECT_EQ(groups(kDelegates, 3, world), "{0 1 2} {3 5} {4}");
}

TEST(DsSync, RacksOfTwoMixEveryOtherStep) {
  const World world = racks("3x2");
  EXPECT_EQ(groups(kDelegates, 0, world), "{0 2 4} {1} {3} {5}");
  EXPECT_EQ(groups(kDelegates, 1, world), "{0 1} {2 3} {4 5}");
  EXPECT_EQ(groups(kDelegates, 2, world), "{0} {1 3 5} {2} {4}");
}

TEST(DsSync, OneRackIsAGrid) {
  EXPECT_EQ(groups(kDelegates, 0, flat(6)), groups("ds-sync", 0, flat(6)));
  EXPECT_EQ(groups(kDelegates, 1, flat(6)), groups("ds-sync", 1, flat(6)));
}

TEST(DsSync, SlowHostsAreSetApart) {
  const World world = racks("2x5", ",slow=1*5");
  EXPECT_EQ(sense_racks(world)[0].slow, std::vector<Rank>{1});
  EXPECT_TRUE(sense_racks(world)[1].slow.empty());
  for (Step step = 0; step < 5; ++step)
    for (const Exchange& exchange : program(kDelegates, step, world).exchanges)
      EXPECT_TRUE(!exchange.group.contains(1) || exchange.group.size() <= 2) << print(exchange);
  EXPECT_EQ(groups(kDelegates, 0, world), "{0 5} {1 2} {3 4} {6 7 8 9}");
}

TEST(DsSync, AThinLinkMakesAHostSlow) {
  World world = racks("2x4");
  world.cluster.workers[6].link.bandwidth.bytes_per_second /= 4;
  EXPECT_EQ(sense_racks(world)[1].slow, std::vector<Rank>{6});
}

TEST(DsSync, ARackOfSlowHostsIsLeftAlone) {
  World world = racks("2x2", ",slow=2*9,slow=3*9");
  EXPECT_TRUE(sense_racks(world)[1].slow.empty());
}

TEST(DsSync, DelayedDelegatesAreCorrectedBeforeTheRackAverages) {
  const std::string spec = "ds-sync:pattern=bottleneck,delay=2,bucket=single";
  const World world = racks("2x4");
  EXPECT_EQ(groups(spec, 0, world), "{0 1 2 3} {4 5 6 7}");
  const Program crossing = program(spec, 1, world);
  ASSERT_EQ(crossing.exchanges.size(), 3U);
  EXPECT_EQ(print(crossing.exchanges[0]),
            "bucket 0 weight all_reduce {0 4}, bucket_ready -> after_step +2, correct 4, lane 1");
  EXPECT_EQ(program(spec, 2, world).exchanges.size(), 2U);
  EXPECT_TRUE(program(spec, 4, world).exchanges.front().group.contains(1));
  EXPECT_EQ(make(spec)->traits(world).period, 12);
  EXPECT_EQ(make(spec)->traits(world).staleness, 2);
}

TEST(DsSync, UnequalRacksAreWeightedByTheirSizes) {
  const Program crossing =
      program("ds-sync:pattern=bottleneck,delay=1,bucket=single", 1, without(racks("2x4"), {7}));
  const Exchange& cross = crossing.exchanges.front();
  EXPECT_EQ(cross.weights, (std::vector<double>{4, 3}));
  EXPECT_EQ(cross.scales, cross.weights);
}

TEST(DsSync, AutomaticDelayCoversTheSlowLink) {
  const World world = racks("4x4");
  const NamedStrategy strategy = make("ds-sync:pattern=bottleneck");
  const Trace model = trace(3, 400'000);
  const BucketPlan plan = buckets(strategy, world, model);
  const int delay = strategy->traits_with(world, plan).staleness;
  ASSERT_GT(delay, 0);
  // The delegates' all-reduce fits into that many steps of nothing but computing, not in one less.
  Exchange crossing;
  for (const Exchange& exchange : strategy->program(1, world, plan).exchanges)
    if (exchange.lane == 1) crossing = exchange;
  Seconds slow{};
  for (const Bucket& bucket : plan) slow += CostModel(world.cluster).time(crossing, bucket.bytes);
  EXPECT_LE(slow, delay * model.compute());
  EXPECT_GT(slow, (delay - 1) * model.compute());
  // Racks whose uplinks are as fast as their links have nothing to hide.
  const World even(parse_cluster("racks:4x4,inner=20us/10Gbps,outer=1us/100Gbps"));
  EXPECT_EQ(strategy->traits_with(even, plan).staleness, 0);
}

TEST(DsSync, BadOptions) {
  EXPECT_THROW(make("ds-sync:delay=2"), UsageError);
  EXPECT_THROW(make("ds-sync:pattern=bottleneck,delay=2,order=combine-then-adapt"), UsageError);
  EXPECT_THROW(make("ds-sync:pattern=bottleneck,delay=-1"), UsageError);
  EXPECT_NO_THROW(make("ds-sync:delay=0"));
}

}  // namespace
}  // namespace riffle::test
