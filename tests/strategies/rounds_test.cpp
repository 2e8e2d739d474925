// local-sgd, dasgd and diloco: strategies with rounds; gossip.
#include <gtest/gtest.h>

#include "riffle/error.h"
#include "support/programs.h"

namespace riffle::test {
namespace {

TEST(LocalSgd, AveragesEveryTau) {
  for (Step step = 0; step < 16; ++step)
    EXPECT_EQ(program("local-sgd:tau=5", step, flat(4)).exchanges.size(), step % 5 == 4 ? 1U : 0U);
  EXPECT_EQ(print(program("local-sgd", 7, flat(2)).exchanges.front()),
            "bucket 0 weight all_reduce {0 1}, step_done -> before_forward +1, replace");
}

TEST(Dasgd, TheAverageArrivesLate) {
  EXPECT_EQ(print(program("dasgd:delay=3", 3, flat(2)).exchanges.front()),
            "bucket 0 weight all_reduce {0 1}, step_done -> after_step +3, correct 1");
  EXPECT_EQ(print(program("dasgd:merge=mix", 3, flat(2)).exchanges.front()),
            "bucket 0 weight all_reduce {0 1}, step_done -> after_step +1, mix 0.25");
  EXPECT_EQ(make("dasgd:delay=3")->traits(flat(2)).staleness, 3);
}

TEST(Dasgd, BadOptions) {
  EXPECT_THROW(make("dasgd:tau=0"), UsageError);
  EXPECT_THROW(make("dasgd:delay=0"), UsageError);
  EXPECT_THROW(make("dasgd:tau=3,delay=4"), UsageError);
  EXPECT_THROW(make("dasgd:xi=0.5"), UsageError);
  EXPECT_THROW(make("dasgd:merge=mix,xi=1"), UsageError);
}

TEST(Diloco, TakesAnOuterStep) {
  EXPECT_EQ(print(program("diloco", 19, flat(2)).exchanges.front()),
            "bucket 0 weight all_reduce {0 1}, step_done -> before_forward +1, outer 0.7 momentum "
            "0.9");
}

TEST(Gossip, PeersAreAtPowersOfTwo) {
  const auto shift = [](Step step, int workers) {
    return program("gossip", step, flat(workers)).exchanges.front().shift;
  };
  EXPECT_EQ(shift(0, 8), 1);
  EXPECT_EQ(shift(1, 8), 2);
  EXPECT_EQ(shift(2, 8), 4);
  EXPECT_EQ(shift(3, 8), 1);
  EXPECT_EQ(shift(3, 9), 8);
  EXPECT_EQ(make("gossip")->traits(flat(9)).period, 4);
  EXPECT_EQ(make("gossip")->traits(flat(1)).period, 1);
}

TEST(Gossip, OrdersOfMixing) {
  EXPECT_EQ(print(program("gossip", 1, flat(4)).exchanges.front()),
            "bucket 0 weight shift(2) {0 1 2 3}, bucket_stepped -> before_forward +1, replace");
  EXPECT_EQ(print(program("gossip:order=combine-then-adapt", 1, flat(4)).exchanges.front()),
            "bucket 0 weight shift(2) {0 1 2 3}, step_done -> before_step +1, correct 1");
  EXPECT_EQ(make("gossip")->traits(flat(4)).staleness, 0);
  EXPECT_EQ(make("gossip:order=combine-then-adapt")->traits(flat(4)).staleness, 1);
}

TEST(Hierarchical, IsTwoLevel) {
  EXPECT_EQ(program("hierarchical", 0, racks("2x2")).exchanges.front().algorithm,
            Algorithm::two_level);
  EXPECT_THROW(make("hierarchical:algorithm=ring"), UsageError);
}

}  // namespace
}  // namespace riffle::test
