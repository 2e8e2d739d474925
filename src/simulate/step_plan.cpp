#include "simulate/step_plan.h"

#include "schedule/rules.h"

namespace riffle::simulator {
namespace {

// Each member has messages of its own with each other one where values are served: beyond this many
// members the cost model says how long they take together.
constexpr int kMostServed = 64;

PlannedExchange plan_exchange(const Exchange& exchange, Bytes size, const CostModel& cost,
                              MessagePlans& plans, StepPlan& plan) {
  PlannedExchange planned{.exchange = exchange,
                          .starts = schedule::point_of(exchange.start),
                          .size = size,
                          .messages = nullptr};
  const bool fit = cost.cluster().fit.has_value();
  const Algorithm algorithm = cost.algorithm(exchange, size);
  const bool serves = exchange.collective == Collective::serve;
  const bool many = serves && exchange.group.size() > kMostServed;
  if (fit || many || algorithm == Algorithm::tree || algorithm == Algorithm::automatic) {
    // Published fits, trees and measured curves say how long, not who sends to whom.
    planned.seconds = cost.time(exchange, size).count();
    planned.one_at_a_time = fit;
    const Traffic traffic = cost.traffic(exchange, size);
    plan.bytes += traffic.bytes * exchange.group.size();
    plan.messages += traffic.messages * exchange.group.size();
  } else {
    planned.messages = plans.get(exchange, algorithm);
    plan.bytes += planned.messages->shape().shares() * static_cast<double>(size.count);
    plan.messages += planned.messages->shape().messages();
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

// Links each item to the last earlier one of the same worker that it starts from. (Where that one
// is due before it may start, the worker has waited anyway.)
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
        if (schedule::chains(exchange_of(other), exchange_of(item))) {
          plan.items[item].after = other;
          plan.chained = true;
        }
      earlier.push_back(item);
    }
    for (const int item : items) earlier_of(item).clear();
  }
}

// The update waits for the last of the bucket's gradients.
void postpone(StepPlan& plan, const Exchange& exchange) {
  const auto known =
      std::ranges::find(plan.postponed, exchange.bucket, &std::pair<int, Due>::first);
  if (known == plan.postponed.end())
    plan.postponed.emplace_back(exchange.bucket, exchange.due);
  else if (schedule::moment_of(known->second) < schedule::moment_of(exchange.due))
    known->second = exchange.due;
}

}  // namespace

StepPlan compile_step(const Program& program, const BucketPlan& buckets, DType dtype,
                      const CostModel& cost, MessagePlans& plans) {
  StepPlan plan;
  for (const Exchange& exchange : program.exchanges) {
    plan.by_bucket = plan.by_bucket || schedule::updates_by_bucket(exchange);
    if (schedule::postpones(exchange)) postpone(plan, exchange);
    if (exchange.group.size() < 2) continue;
    plan.lanes = std::max(plan.lanes, exchange.lane + 1);
    const Bytes size =
        wire_bytes(payload_bytes(buckets[exchange.bucket], exchange.payload), dtype, exchange.wire);
    plan.exchanges.push_back(plan_exchange(exchange, size, cost, plans, plan));
  }
  assign_items(plan, cost.cluster().size());
  find_chains(plan, cost.cluster().size(), buckets.size());
  return plan;
}

}  // namespace riffle::simulator
