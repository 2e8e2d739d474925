#include "runtime/profile.h"

#include <gtest/gtest.h>

#include <thread>

namespace riffle::runtime {
namespace {

constexpr int kLayers = 3;

void sleep(double milliseconds) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
}

Trace modelled() {
  Trace trace{.model = "m", .layers = {}, .source = "modelled"};
  for (int i = 0; i < kLayers; ++i)
    trace.layers.push_back({"l", 10, milliseconds(100), milliseconds(100)});
  return trace;
}

// Sleeping takes longer than asked for, on a busy machine much longer, but never less.
void expect_about(Seconds time, double milliseconds) {
  EXPECT_GE(time.count() * 1e3, milliseconds * 0.99);
  EXPECT_LT(time.count() * 1e3, milliseconds + 6);
}

TEST(Profile, EachLayerHasItsOwnTimes) {
  Profile profile(kLayers, 5);
  for (int step = 0; step < Profile::kWarmUp + 5; ++step) {
    EXPECT_TRUE(profile.is_wanted());
    EXPECT_EQ(profile.is_enough(), step >= Profile::kWarmUp + Profile::kEnough);
    const double warm = step < Profile::kWarmUp ? 5 : 1;  // the first steps do not count
    profile.begin_forward();
    for (int layer = 0; layer < kLayers; ++layer) {
      profile.stop();
      sleep(3);  // a wait of the session's
      profile.go_on();
      sleep(warm * 8 * (layer + 1));
      profile.forward_done(layer);
    }
    profile.end_forward();
    for (const int layer : {2, 0, 1}) {  // the order in which they come
      sleep(warm * 10 * (layer + 1));
      profile.gradient(layer);
      profile.stop();
      sleep(4);  // an exchange, or the update of a bucket
      profile.go_on();
    }
    profile.backward_done();
    sleep(3);
    profile.optimizer(milliseconds(2));
    profile.optimizer(milliseconds(1));
    profile.end_step();
  }
  EXPECT_TRUE(profile.is_complete());
  const Trace trace = profile.measured(modelled());
  for (int layer = 0; layer < kLayers; ++layer) {
    expect_about(trace.layers[layer].forward, 8 * (layer + 1));
    expect_about(trace.layers[layer].backward, 10 * (layer + 1));
  }
  EXPECT_NEAR(trace.optimizer_step.count(), 3e-3, 1e-9);
  EXPECT_EQ(trace.source, "measured: medians of 5 steps");
}

TEST(Profile, WhatIsNotReportedIsSaid) {
  Profile nothing(kLayers, 3);
  for (int step = 0; step < 5; ++step) nothing.end_step();
  EXPECT_TRUE(nothing.is_enough());
  EXPECT_EQ(nothing.measured(modelled()), modelled());

  Profile whole(kLayers, 3);
  Profile none(kLayers, 3);
  for (int step = 0; step < 5; ++step) {
    whole.begin_forward();
    sleep(6);
    whole.end_forward();
    for (const int layer : {2, 1, 0}) {
      sleep(layer == 2 ? 2 : 1);
      whole.gradient(layer);
      none.gradient(layer);
    }
    whole.end_step();
    none.end_step();
  }
  const Trace shared = whole.measured(modelled());
  expect_about(shared.forward(), 6);
  EXPECT_NEAR(shared.layers[2].forward / shared.layers[1].forward,
              shared.layers[2].backward / shared.layers[1].backward, 1e-9);
  EXPECT_NE(shared.source.find("shared out"), std::string::npos);
  // The first gradient has nothing to be measured from: it is as the others are.
  const Trace half = none.measured(modelled());
  EXPECT_NEAR(half.layers[2].backward.count(),
              (half.layers[0].backward + half.layers[1].backward).count() / 2, 1e-12);
  EXPECT_NEAR((half.forward() * 2).count(), half.backward().count(), 1e-12);
  EXPECT_NE(half.source.find("half of backward"), std::string::npos);
}

}  // namespace
}  // namespace riffle::runtime
