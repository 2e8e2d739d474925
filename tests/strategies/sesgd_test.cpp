#include <gtest/gtest.h>

#include "riffle/error.h"
#include "support/programs.h"

namespace riffle::test {
namespace {

TEST(Sesgd, DigitsOfSixteenWorkers) {
  EXPECT_EQ(groups("sesgd", 0, flat(16)), "{0 1 2 3} {4 5 6 7} {8 9 10 11} {12 13 14 15}");
  EXPECT_EQ(groups("sesgd", 1, flat(16)), "{0 4 8 12} {1 5 9 13} {2 6 10 14} {3 7 11 15}");
  EXPECT_EQ(groups("sesgd", 2, flat(16)), groups("sesgd", 0, flat(16)));
  EXPECT_EQ(groups("sesgd:group=16", 0, flat(16)), groups("sesgd:group=99", 5, flat(16)));
}

TEST(Sesgd, GapsInTheMembershipDoNotMatter) {
  EXPECT_EQ(groups("sesgd", 0, without(flat(6), {1, 4})), "{0 2} {3 5}");
  EXPECT_EQ(groups("sesgd", 1, without(flat(6), {1, 4})), "{0 3} {2 5}");
}

TEST(Sesgd, GroupsStayForEverySteps) {
  for (const std::string schedule : {"digits", "random"}) {
    const std::string spec = "sesgd:every=3,schedule=" + schedule;
    EXPECT_EQ(groups(spec, 0, flat(16)), groups(spec, 2, flat(16)));
    EXPECT_NE(groups(spec, 2, flat(16)), groups(spec, 3, flat(16)));
  }
}

TEST(Sesgd, OrdersOfMixing) {
  const Exchange first = program("sesgd:bucket=single", 0, flat(4)).exchanges.front();
  EXPECT_EQ(print(first),
            "bucket 0 weight all_reduce {0 1}, bucket_stepped -> before_forward +1, "
            "replace");
  const Exchange late =
      program("sesgd:bucket=single,order=combine-then-adapt", 0, flat(4)).exchanges.front();
  EXPECT_EQ(print(late),
            "bucket 0 weight all_reduce {0 1}, step_done -> before_step +1, correct 1");
}

TEST(Sesgd, StateFollowsTheWeights) {
  const Program mixed = program("sesgd:bucket=layer,mix_state=true", 0, flat(4));
  ASSERT_EQ(mixed.exchanges.size(), 12U);
  for (std::size_t i = 0; i < 6; ++i) {
    const Exchange& state = mixed.exchanges[6 + i];
    EXPECT_EQ(mixed.exchanges[i].payload, Payload::weight);
    EXPECT_EQ(state.payload, Payload::state);
    EXPECT_EQ(state.group, mixed.exchanges[i].group);
    EXPECT_EQ(state.due, before_step(1));
  }
}

TEST(Sesgd, Buckets) {
  const auto count = [](const std::string& spec) {
    return buckets(make(spec), flat(16), trace(8)).size();
  };
  EXPECT_EQ(count("sesgd:bucket=layer"), 8U);
  EXPECT_EQ(count("sesgd:bucket=single"), 1U);
  EXPECT_EQ(count("sesgd:bucket=8MB"), 4U);
  EXPECT_GT(count("sesgd"), 1U);
  EXPECT_EQ(count("sesgd:order=combine-then-adapt"), 1U);
}

TEST(Sesgd, BadOptions) {
  EXPECT_THROW(make("sesgd:group=1"), UsageError);
  EXPECT_THROW(make("sesgd:every=0"), UsageError);
  EXPECT_THROW(make("sesgd:schedule=digit"), UsageError);
  EXPECT_THROW(make("sesgd:bucket=12"), UsageError);
  EXPECT_THROW(make("sesgd:delay=1"), UsageError);
}

}  // namespace
}  // namespace riffle::test
