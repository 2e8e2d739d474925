#include "schedule/clocks.h"

#include <gtest/gtest.h>

namespace riffle::schedule {
namespace {

using Members = std::vector<int>;

TEST(Clocks, WithoutABoundEverybodyIsAnsweredAtOnce) {
  Clocks clocks(3, -1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(clocks.sent(2), Members{2});
  EXPECT_EQ(clocks.of(2), 100);
  EXPECT_EQ(clocks.of(0), 0);
}

TEST(Clocks, WithZeroAllAreAnsweredTogetherInOrder) {
  Clocks clocks(3, 0);
  for (int round = 0; round < 4; ++round) {
    EXPECT_EQ(clocks.sent(2), Members{});
    EXPECT_EQ(clocks.sent(0), Members{});
    EXPECT_TRUE(clocks.waits(0));
    EXPECT_EQ(clocks.sent(1), (Members{0, 1, 2}));
    EXPECT_FALSE(clocks.waits(0));
  }
}

TEST(Clocks, TheFastWaitForTheSlowestBeyondTheBound) {
  Clocks clocks(3, 2);
  EXPECT_EQ(clocks.sent(0), Members{0});
  EXPECT_EQ(clocks.sent(0), Members{0});
  EXPECT_EQ(clocks.sent(0), Members{});  // three ahead of both
  EXPECT_EQ(clocks.sent(1), Members{1});
  EXPECT_TRUE(clocks.waits(0));  // still three ahead of 2
  EXPECT_EQ(clocks.sent(2), (Members{0, 2}));
  EXPECT_EQ(clocks.sent(1), Members{1});
  EXPECT_EQ(clocks.sent(0), Members{});
  EXPECT_EQ(clocks.sent(2), (Members{0, 2}));
}

// The slowest is never held up, so somebody can always go on.
TEST(Clocks, TheSlowestIsAlwaysAnswered) {
  for (int ahead = 0; ahead < 4; ++ahead) {
    Clocks clocks(4, ahead);
    for (int i = 0; i < 40; ++i) {
      int slowest = 0;
      for (int member = 1; member < 4; ++member)
        if (clocks.of(member) < clocks.of(slowest)) slowest = member;
      ASSERT_FALSE(clocks.waits(slowest));
      clocks.sent(slowest);
    }
    EXPECT_EQ(clocks.of(3), 10);
  }
}

}  // namespace
}  // namespace riffle::schedule
