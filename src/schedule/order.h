// The order in which a worker passes the points of its steps.
#pragma once

#include <string_view>
#include <vector>

#include "schedule/points.h"

namespace riffle::schedule {

// "before_forward", "bucket_ready", ...: the words of program.h.
std::string_view name_of(Point point);

// Whether all buckets pass the point together: backward_done and step_done.
constexpr bool is_of_all(Point point) {
  return point == Point::backward_done || point == Point::step_done;
}

// Where a worker is.
struct Place {
  Step step = 0;
  Point point{};
  int bucket = 0;  // 0 where the point is of all
  bool operator==(const Place&) const = default;
};

// The places a worker has passed just before this one; what lies further back follows. Forward goes
// from the last bucket to the first, backward from the first to the last. A bucket may be updated
// while backward runs, but nobody waits at its before_step until backward is done.
std::vector<Place> just_before(const Place& place, int buckets);

}  // namespace riffle::schedule
