// The points of a step, as one worker passes them for one bucket, and time counted by them.
#pragma once

#include "riffle/program.h"

namespace riffle::schedule {

// In order. At one point merges come before snapshots.
enum class Point : int {
  before_forward,
  gradient_ready,
  backward_done,
  before_step,
  update,
  stepped,  // after_step and bucket_stepped
  step_done,
};
inline constexpr int kPoints = 7;

Point point_of(Start start);
Point point_of(DuePoint due);

// Time as a worker counts it, without a clock.
using Moment = std::int64_t;
constexpr Moment moment(Step step, Point point) {
  return step * kPoints + static_cast<int>(point);
}
constexpr Step step_of(Moment at) {
  return at / kPoints;
}
constexpr Point point_at(Moment at) {
  return static_cast<Point>(at % kPoints);
}

}  // namespace riffle::schedule
