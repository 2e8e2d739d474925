// The workers' lanes: which exchange a lane takes next, when it may start, and what its end sets
// free.
#include <fmt/format.h>

#include <algorithm>

#include "simulate/workers.h"

namespace riffle {
namespace {

constexpr int kExchangeBits = 24;

std::int64_t owner_of(Step step, int exchange) {
  return (step << kExchangeBits) | exchange;
}

}  // namespace

double Workers::start_time(int id, Step step, const Exchange& exchange) const {
  const Worker& worker = workers_[id];
  if (step < worker.step || worker.phase == Phase::ended) return 0;  // long past
  const std::size_t at = static_cast<std::size_t>(id) * buckets_ + exchange.bucket;
  const bool by_bucket = active_[static_cast<std::size_t>(step - oldest_)].plan->stepped;
  switch (exchange.start) {
    case Start::bucket_ready:
      if (worker.phase == Phase::forward) return kUnknown;
      if (!by_bucket) return worker.backward_start + times_.ready[exchange.bucket] * worker.factor;
      if (worker.phase == Phase::backward &&
          (exchange.bucket > worker.cursor ||
           (exchange.bucket == worker.cursor && !worker.at_ready)))
        return kUnknown;
      return ready_at_[at];
    case Start::bucket_stepped:
      return stepped_at_[at] < 0 ? kUnknown : stepped_at_[at];
    case Start::backward_done:
      return worker.phase == Phase::forward || worker.phase == Phase::backward
                 ? kUnknown
                 : worker.backward_end;
    case Start::step_done:
      break;
  }
  return kUnknown;
}

void Workers::poke_all(int id, double now) {
  for (int lane = 0; lane < lanes_; ++lane) poke(id, lane, now);
}

void Workers::poke(int id, int lane, double now) {
  const std::size_t which = static_cast<std::size_t>(lane) * count_ + id;
  for (;;) {
    Lane& state = lane_states_[which];
    if (state.busy) return;
    if (state.step < oldest_) {
      state.step = oldest_;
      state.position = 0;
    }
    if (state.step > workers_[id].step) return;
    ActiveStep& step = active(state.step);
    const StepPlan& plan = *step.plan;
    const int cell = id * plan.lanes + lane;
    const bool any = lane < plan.lanes && plan.first[cell] + state.position < plan.first[cell + 1];
    if (!any) {
      ++state.step;
      state.position = 0;
      continue;
    }
    const int item = plan.first[cell] + state.position;
    const StepPlan::Item& what = plan.items[item];
    if (what.after >= 0 && step.done[what.after] == 0) return;
    const double start = start_time(id, state.step, plan.exchanges[what.exchange].exchange);
    if (start > now) {
      if (start != kUnknown && state.armed != start) {
        state.armed = start;
        queue_.push(start, Happening::lane, static_cast<std::int32_t>(which));
      }
      return;
    }
    state.busy = true;
    state.joined = now;
    join(id, step, state.step, item, now);
  }
}

void Workers::lane_event(int which, double now) {
  if (lane_states_[which].armed != now) return;
  lane_states_[which].armed = -1;
  poke(which % count_, which / count_, now);
}

void Workers::join(int id, ActiveStep& step, Step number, int item, double now) {
  const StepPlan::Item& what = step.plan->items[item];
  const PlannedExchange& planned = step.plan->exchanges[what.exchange];
  int& collective = step.collective[what.exchange];
  if (collective < 0) {
    const std::int64_t owner = owner_of(number, what.exchange);
    collective =
        planned.schedule
            ? collectives_.open(planned.schedule, static_cast<double>(planned.size.count), owner)
            : collectives_.open_timed(planned.exchange.group.size(), planned.seconds,
                                      planned.one_at_a_time, owner);
  }
  if (id == 0) seen_[number].exchanges.push_back({what.exchange, now, -1});
  collectives_.join(collective, what.member, now);
}

void Workers::member_done(std::int64_t owner, int member, double now) {
  const Step number = owner >> kExchangeBits;
  const auto exchange_id = static_cast<int>(owner & ((std::int64_t{1} << kExchangeBits) - 1));
  ActiveStep& step = active(number);
  const PlannedExchange& planned = step.plan->exchanges[exchange_id];
  const Exchange& exchange = planned.exchange;
  const int id = exchange.group.ranks()[member];
  Lane& state = lane_states_[static_cast<std::size_t>(exchange.lane) * count_ + id];
  state.busy = false;
  const int item = step.plan->first[id * step.plan->lanes + exchange.lane] + state.position++;
  if (!step.done.empty()) step.done[item] = 1;
  --step.left;
  add_due(exchange, number, id, -1);
  if (id == 0)
    for (Seen& seen : seen_[number].exchanges)
      if (seen.exchange == exchange_id) seen.end = now;
  if (timeline_ != nullptr && id < recorded_ && number >= record_from_)
    timeline_->events.push_back({EventKind::exchange, fmt::format("bucket {}", exchange.bucket), id,
                                 exchange.lane, number, Seconds(state.joined), Seconds(now),
                                 planned.size});

  Worker& worker = workers_[id];
  if (exchange.due.point == DuePoint::after_step && number + exchange.due.steps == worker.step &&
      !stepped_at_.empty()) {
    double& stepped = stepped_at_[static_cast<std::size_t>(id) * buckets_ + exchange.bucket];
    if (stepped < 0 && pending(DuePoint::after_step, id, exchange.bucket) == 0)
      stepped = std::max(-stepped, now);
    poke_all(id, now);
  } else if (step.plan->chained) {
    poke_all(id, now);
  } else {
    poke(id, exchange.lane, now);
  }
  if (!worker.blocked || must_wait(id)) return;
  worker.blocked = false;
  note(EventKind::wait, "bucket", exchange.bucket, id, worker.blocked_since, now);
  worker.clock = now;
  run(id, now);
}

}  // namespace riffle
