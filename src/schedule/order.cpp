#include "schedule/order.h"

#include <array>

namespace riffle::schedule {

std::string_view name_of(Point point) {
  static constexpr std::array<std::string_view, kPoints> kNames{
      "before_forward", "bucket_ready", "backward_done", "before_step",
      "update",         "after_step",   "step_done"};
  return kNames.at(static_cast<std::size_t>(point));
}

std::vector<Place> just_before(const Place& place, int buckets) {
  const auto [step, point, bucket] = place;
  switch (point) {
    case Point::before_forward:
      if (bucket + 1 < buckets) return {{step, point, bucket + 1}};
      if (step == 0) return {};
      return {{step - 1, Point::step_done, 0}};
    case Point::gradient_ready:
      if (bucket > 0) return {{step, point, bucket - 1}};
      return {{step, Point::before_forward, 0}};
    case Point::backward_done:
      return {{step, Point::gradient_ready, buckets - 1}};
    case Point::before_step:
      return {{step, Point::backward_done, 0}};
    case Point::update:
      return {{step, Point::before_step, bucket}};
    case Point::stepped:
      return {{step, Point::update, bucket}};
    case Point::step_done:
      break;
  }
  std::vector<Place> all;
  for (int each = 0; each < buckets; ++each) all.push_back({step, Point::stepped, each});
  return all;
}

}  // namespace riffle::schedule
