// The order of a worker's points, against a walk through two steps written by hand.
#include "schedule/order.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace riffle::schedule {
namespace {

TEST(Order, OneStepOfTwoBuckets) {
  using enum Point;
  // A worker may pass the places in this order, each after all that just_before says.
  const std::vector<Place> walk{
      {0, before_forward, 1}, {0, before_forward, 0}, {0, gradient_ready, 0},
      {0, gradient_ready, 1}, {0, backward_done, 0},  {0, before_step, 0},
      {0, update, 0},         {0, stepped, 0},        {0, before_step, 1},
      {0, update, 1},         {0, stepped, 1},        {0, step_done, 0},
      {1, before_forward, 1}, {1, before_forward, 0}, {1, gradient_ready, 0},
  };
  for (auto at = walk.begin(); at != walk.end(); ++at)
    for (const Place& before : just_before(*at, 2))
      EXPECT_NE(std::find(walk.begin(), at, before), at)
          << name_of(before.point) << " before " << name_of(at->point);
  EXPECT_TRUE(just_before(walk.front(), 2).empty());
}

TEST(Order, WhatComesJustBefore) {
  using enum Point;
  const auto one = [](const Place& place) {
    const std::vector<Place> all = just_before(place, 3);
    EXPECT_EQ(all.size(), 1U);
    return all.front();
  };
  EXPECT_EQ(one({4, before_forward, 2}), (Place{3, step_done, 0}));
  EXPECT_EQ(one({4, before_forward, 1}), (Place{4, before_forward, 2}));
  EXPECT_EQ(one({4, gradient_ready, 0}), (Place{4, before_forward, 0}));
  EXPECT_EQ(one({4, gradient_ready, 2}), (Place{4, gradient_ready, 1}));
  EXPECT_EQ(one({4, backward_done, 0}), (Place{4, gradient_ready, 2}));
  EXPECT_EQ(one({4, before_step, 1}), (Place{4, backward_done, 0}));
  EXPECT_EQ(one({4, update, 1}), (Place{4, before_step, 1}));
  EXPECT_EQ(one({4, stepped, 1}), (Place{4, update, 1}));
  EXPECT_EQ(just_before({4, step_done, 0}, 3),
            (std::vector<Place>{{4, stepped, 0}, {4, stepped, 1}, {4, stepped, 2}}));
}

TEST(Order, NamesAreThoseOfPrograms) {
  EXPECT_EQ(name_of(point_of(DuePoint::before_forward)), name_of(DuePoint::before_forward));
  EXPECT_EQ(name_of(point_of(DuePoint::before_step)), name_of(DuePoint::before_step));
  EXPECT_EQ(name_of(point_of(DuePoint::after_step)), name_of(DuePoint::after_step));
  EXPECT_EQ(name_of(point_of(Start::bucket_ready)), name_of(Start::bucket_ready));
  EXPECT_EQ(name_of(point_of(Start::backward_done)), name_of(Start::backward_done));
  EXPECT_EQ(name_of(point_of(Start::step_done)), name_of(Start::step_done));
}

}  // namespace
}  // namespace riffle::schedule
