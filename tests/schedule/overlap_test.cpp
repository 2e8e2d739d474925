#include "schedule/overlap.h"

#include <gmock/gmock.h>

#include "refusal.h"

namespace riffle::schedule {
namespace {

constexpr Needs kMixes{.weights = true, .per_bucket = true};
constexpr Needs kPostpones{.gradients = true, .postpones = true};
constexpr Needs kPlain{.gradients = true, .ready = true};

void leave_alone(Overlap& overlap) {
  EXPECT_EQ(overlap.begin_step(""), "");
  overlap.end_step();
}

TEST(Overlap, BeginsAfterTheWatchedSteps) {
  Overlap mixes(kMixes, Overlap::Mode::watched);
  Overlap postpones(kPostpones, Overlap::Mode::watched);
  for (int step = 0; step < Overlap::kWatched; ++step) {
    EXPECT_FALSE(mixes.updates_in_backward());
    EXPECT_FALSE(postpones.postpones());
    EXPECT_TRUE(mixes.watches() && mixes.compares());
    leave_alone(mixes);
    leave_alone(postpones);
  }
  EXPECT_TRUE(mixes.updates_in_backward());
  EXPECT_FALSE(mixes.postpones());
  EXPECT_TRUE(postpones.postpones());
  EXPECT_FALSE(postpones.updates_in_backward());
  EXPECT_TRUE(postpones.watches());
  EXPECT_FALSE(postpones.compares());
}

TEST(Overlap, ALoopThatChangesGradientsKeepsItOffForGood) {
  Overlap overlap(kPostpones, Overlap::Mode::watched);
  leave_alone(overlap);
  EXPECT_NE(overlap.begin_step("layer.weight").find("layer.weight"), std::string::npos);
  overlap.end_step();
  for (int step = 0; step < 5; ++step) {
    EXPECT_FALSE(overlap.watches());
    EXPECT_EQ(overlap.begin_step("layer.weight"), "");  // said once
    overlap.end_step();
    EXPECT_FALSE(overlap.postpones());
  }
}

TEST(Overlap, ALoopThatBeginsToChangeThemLaterIsToldTheWayOut) {
  for (const Needs& needs : {kPostpones, kMixes}) {
    Overlap overlap(needs, Overlap::Mode::watched);
    for (int step = 0; step < Overlap::kWatched; ++step) leave_alone(overlap);
    EXPECT_THAT(riffle::refusal([&] { (void)overlap.begin_step("w"); }),
                testing::HasSubstr("session.clip_grad_norm_"));
  }
}

TEST(Overlap, ClippingThroughTheSessionStopsUpdatesInBackward) {
  Overlap mixes(kMixes, Overlap::Mode::watched);
  mixes.clip(false);
  leave_alone(mixes);
  leave_alone(mixes);
  leave_alone(mixes);
  EXPECT_FALSE(mixes.updates_in_backward());
  Overlap late(kMixes, Overlap::Mode::full);
  EXPECT_THAT(riffle::refusal([&] { late.clip(true); }), testing::HasSubstr("first step"));
  // The session clips what is scattered itself, so postponing goes on.
  Overlap postpones(kPostpones, Overlap::Mode::full);
  postpones.clip(false);
  EXPECT_TRUE(postpones.postpones());
}

TEST(Overlap, FollowsItsMode) {
  EXPECT_TRUE(Overlap(kMixes, Overlap::Mode::full).updates_in_backward());
  EXPECT_FALSE(Overlap(kMixes, Overlap::Mode::full).watches());
  EXPECT_FALSE(Overlap(kMixes, Overlap::Mode::none).updates_in_backward());
  EXPECT_FALSE(Overlap(kPostpones, Overlap::Mode::none).postpones());
  EXPECT_FALSE(Overlap(kPlain, Overlap::Mode::watched).watches());
}

}  // namespace
}  // namespace riffle::schedule
