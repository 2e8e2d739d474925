#include "schedule/rules.h"

#include <fmt/format.h>

namespace riffle::schedule {
namespace {

bool is_half(const Exchange& exchange) {
  return exchange.collective == Collective::reduce_scatter ||
         exchange.collective == Collective::all_gather;
}

// What serving asks of an exchange: the value must rest from the update until it is used.
std::string refusal_to_serve(const Exchange& exchange) {
  if (exchange.collective != Collective::serve)
    return exchange.ahead < 0 ? "" : "only where values are served may a member be ahead";
  if (exchange.payload != Payload::weight && exchange.payload != Payload::buffers)
    return "only weights are served";
  if (exchange.merge.kind != Merge::Kind::replace || !travels_in_place(exchange))
    return "what is served replaces the value between its update and the next forward";
  if (!exchange.weights.empty()) return "members that serve weigh the same";
  if (exchange.wire != Wire::f32) return "what is served travels as it is; use wire=f32";
  return {};
}

}  // namespace

Point point_of(Start start) {
  switch (start) {
    case Start::bucket_ready:
      return Point::gradient_ready;
    case Start::backward_done:
      return Point::backward_done;
    case Start::bucket_stepped:
      return Point::stepped;
    case Start::step_done:
      break;
  }
  return Point::step_done;
}

Point point_of(DuePoint due) {
  switch (due) {
    case DuePoint::before_forward:
      return Point::before_forward;
    case DuePoint::before_step:
      return Point::before_step;
    case DuePoint::after_step:
      break;
  }
  return Point::stepped;
}

Moment moment_of(const Due& due) {
  return moment(due.steps, point_of(due.point));
}

Moment taken(const Exchange& exchange, Step step) {
  return moment(step, point_of(exchange.start));
}

Moment merged(const Exchange& exchange, Step step) {
  return moment_of(exchange.due) + moment(step, Point::before_forward);
}

bool postpones(const Exchange& exchange) {
  return exchange.payload == Payload::gradient && merged(exchange, 0) > moment(0, Point::update);
}

bool chains(const Exchange& earlier, const Exchange& later) {
  return earlier.bucket == later.bucket && earlier.payload == later.payload &&
         merged(earlier, 0) <= merged(later, 0);
}

bool chains_in_flight(const Exchange& earlier, const Exchange& later) {
  return chains(earlier, later) && merged(earlier, 0) > taken(later, 0);
}

bool overwrites(const Exchange& exchange) {
  const Merge& merge = exchange.merge;
  return merge.kind == Merge::Kind::replace || (merge.kind == Merge::Kind::outer && merge.xi == 0);
}

Moment next_write(Payload payload, Moment after) {
  const Point point = payload == Payload::gradient ? Point::gradient_ready : Point::update;
  const Moment same_step = moment(step_of(after), point);
  return same_step > after ? same_step : moment(step_of(after) + 1, point);
}

bool updates_by_bucket(const Exchange& exchange) {
  return exchange.start == Start::bucket_stepped;
}

bool continues(const Exchange& earlier, const Exchange& later) {
  return earlier.collective == Collective::reduce_scatter &&
         later.collective == Collective::all_gather && earlier.bucket == later.bucket &&
         earlier.payload == later.payload && earlier.lane == later.lane &&
         earlier.group == later.group && travels_in_place(earlier);
}

bool travels_in_place(const Exchange& exchange) {
  switch (exchange.payload) {
    case Payload::gradient:
      // Between backward and the update that uses it.
      return exchange.merge.kind == Merge::Kind::replace &&
             merged(exchange, 0) <= moment(1, Point::before_forward);
    case Payload::weight:
    case Payload::buffers:
      // Between the update and the next forward.
      return overwrites(exchange) && exchange.due == before_forward(1) &&
             taken(exchange, 0) >= moment(0, Point::stepped);
    case Payload::state:
      break;
  }
  return false;
}

std::string refusal(const Exchange& exchange) {
  if (std::string why = refusal_to_serve(exchange); !why.empty()) return why;
  if (exchange.wire != Wire::f32 && exchange.payload != Payload::gradient &&
      exchange.payload != Payload::weight)
    return "only gradients and weights are rounded; use wire=f32";
  if (exchange.lane < 0 || exchange.lane > 14) return "there are lanes 0 to 14";
  const bool outer = exchange.merge.kind == Merge::Kind::outer;
  if (outer && exchange.payload != Payload::weight) return "an outer optimizer is for weights";
  if (is_half(exchange) && !travels_in_place(exchange))
    return "half of an all_reduce must replace before the value is used";
  if (outer && overwrites(exchange) && !travels_in_place(exchange))
    return "an outer step without a local share is due before the next forward";
  return {};
}

std::string refusal(const Exchange& earlier, const Exchange& later) {
  if (travels_in_place(earlier) && travels_in_place(later) &&
      earlier.merge.kind == Merge::Kind::replace)
    return {};
  return fmt::format(
      "it starts from the result of the {} of {} while that is in flight; then both must replace "
      "the value before it is used, or it must start after the other is due",
      name_of(earlier.collective), print(earlier.group));
}

}  // namespace riffle::schedule
