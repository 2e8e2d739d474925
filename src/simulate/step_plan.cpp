#include "simulate/step_plan.h"

#include <algorithm>

#include "riffle/error.h"

namespace riffle {
namespace {

// Due points of exchanges of one step, in the order a worker meets them.
int due_order(const Due& due) {
  const int point = due.point == DuePoint::before_forward ? 0
                    : due.point == DuePoint::before_step  ? 1
                                                          : 2;
  return 3 * due.steps + point;
}

// The later one starts from the earlier one's result. (Where the earlier one is due before the
// later one starts, the worker has waited for it anyway.)
bool chains(const Exchange& earlier, const Exchange& later) {
  return earlier.bucket == later.bucket && earlier.payload == later.payload &&
         due_order(earlier.due) <= due_order(later.due);
}

PlannedExchange plan_exchange(const Exchange& exchange, Bytes size, const CostModel& cost,
                              ScheduleCache& schedules, StepPlan& plan) {
  PlannedExchange planned{.exchange = exchange, .size = size, .schedule = nullptr};
  const bool fit = cost.cluster().fit.has_value();
  const Algorithm algorithm = cost.algorithm(exchange, size);
  if (fit || algorithm == Algorithm::tree || algorithm == Algorithm::automatic) {
    // Published fits, trees and measured curves say how long, not who sends to whom.
    planned.seconds = cost.time(exchange, size).count();
    planned.one_at_a_time = fit;
    const Traffic traffic = cost.traffic(exchange, size);
    plan.bytes += traffic.bytes * exchange.group.size();
    plan.messages += traffic.messages * exchange.group.size();
  } else {
    planned.schedule = schedules.get(exchange, algorithm);
    plan.bytes += planned.schedule->shape().shares() * static_cast<double>(size.count);
    plan.messages += planned.schedule->shape().messages();
  }
  return planned;
}

void assign_items(StepPlan& plan, int workers) {
  std::vector<int> count(static_cast<std::size_t>(workers) * plan.lanes + 1, 0);
  for (const PlannedExchange& each : plan.exchanges)
    for (const Rank rank : each.exchange.group) ++count[rank * plan.lanes + each.exchange.lane + 1];
  for (std::size_t i = 1; i < count.size(); ++i) count[i] += count[i - 1];
  plan.first = count;
  plan.items.resize(static_cast<std::size_t>(count.back()));
  for (int e = 0; e < static_cast<int>(plan.exchanges.size()); ++e) {
    const Exchange& exchange = plan.exchanges[e].exchange;
    int member = 0;
    for (const Rank rank : exchange.group)
      plan.items[count[rank * plan.lanes + exchange.lane]++] = {e, member++, -1};
  }
}

// Links each item to the last earlier one of the same worker that it chains to.
void find_chains(StepPlan& plan, int workers, std::size_t buckets) {
  constexpr std::size_t kPayloads = 4;
  std::vector<std::vector<int>> seen(buckets * kPayloads);  // items of one worker
  std::vector<int> items;
  for (int worker = 0; worker < workers; ++worker) {
    items.clear();
    for (int i = plan.first[worker * plan.lanes]; i < plan.first[(worker + 1) * plan.lanes]; ++i)
      items.push_back(i);
    if (plan.lanes > 1) std::ranges::sort(items, {}, [&](int i) { return plan.items[i].exchange; });
    const auto exchange_of = [&](int item) -> const Exchange& {
      return plan.exchanges[plan.items[item].exchange].exchange;
    };
    const auto earlier_of = [&](int item) -> std::vector<int>& {
      const Exchange& exchange = exchange_of(item);
      return seen[exchange.bucket * kPayloads + static_cast<std::size_t>(exchange.payload)];
    };
    for (const int item : items) {
      auto& earlier = earlier_of(item);
      for (const int other : earlier)
        if (chains(exchange_of(other), exchange_of(item))) {
          plan.items[item].after = other;
          plan.chained = true;
        }
      earlier.push_back(item);
    }
    for (const int item : items) earlier_of(item).clear();
  }
}

}  // namespace

StepPlan compile_step(const Program& program, const BucketPlan& buckets, DType dtype,
                      const CostModel& cost, ScheduleCache& schedules) {
  StepPlan plan;
  std::vector<char> late(buckets.size(), 0);
  for (const Exchange& exchange : program.exchanges) {
    plan.stepped = plan.stepped || exchange.start == Start::bucket_stepped;
    if (exchange.payload == Payload::gradient && exchange.due.point == DuePoint::before_forward &&
        !late[exchange.bucket]) {
      late[exchange.bucket] = 1;
      plan.postponed.emplace_back(exchange.bucket, exchange.due.steps);
    }
    if (exchange.group.size() < 2) continue;
    plan.lanes = std::max(plan.lanes, exchange.lane + 1);
    const Bytes size = wire_bytes(payload_bytes(buckets[exchange.bucket], exchange.payload),
                                  dtype, exchange.wire);
    plan.exchanges.push_back(plan_exchange(exchange, size, cost, schedules, plan));
  }
  assign_items(plan, cost.cluster().size());
  find_chains(plan, cost.cluster().size(), buckets.size());
  return plan;
}

}  // namespace riffle
