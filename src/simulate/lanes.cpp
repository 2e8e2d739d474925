#include "simulate/lanes.h"

#include <fmt/format.h>

#include "schedule/rules.h"

namespace riffle::simulator {
namespace {

// A collective is known to its listener by the step and the place of its exchange.
constexpr int kExchangeBits = 24;
std::int64_t owner_of(Step step, int exchange) {
  return (step << kExchangeBits) | exchange;
}

}  // namespace

void Lanes::poke(int worker, int lane, double now) {
  const std::size_t which = static_cast<std::size_t>(lane) * workers_ + worker;
  for (;;) {
    State& state = states_[which];
    if (state.busy) return;
    if (state.step < steps_.oldest()) {
      state.step = steps_.oldest();
      state.position = 0;
    }
    if (state.step > progress_[worker].step) return;
    const ActiveStep& step = steps_[state.step];
    const StepPlan& plan = *step.plan;
    const int cell = worker * plan.lanes + lane;
    const bool any = lane < plan.lanes && plan.first[cell] + state.position < plan.first[cell + 1];
    if (!any) {
      ++state.step;
      state.position = 0;
      continue;
    }
    const int item = plan.first[cell] + state.position;
    const StepPlan::Item& what = plan.items[item];
    if (what.after >= 0 && step.done[what.after] == 0) return;
    const PlannedExchange& planned = plan.exchanges[what.exchange];
    const double start =
        progress_.passed(worker, state.step, planned.starts, planned.exchange.bucket);
    if (start > now) {
      if (start != kUnknown && state.armed != start) {
        state.armed = start;
        queue_.push(start, Happening::lane, static_cast<std::int32_t>(which));
      }
      return;
    }
    state.busy = true;
    state.joined = now;
    join(worker, state.step, item, now);
  }
}

void Lanes::event(int which, double now) {
  if (states_[which].armed != now) return;
  states_[which].armed = -1;
  poke(which % workers_, which / workers_, now);
}

void Lanes::join(int worker, Step number, int item, double now) {
  ActiveStep& step = steps_[number];
  const StepPlan::Item& what = step.plan->items[item];
  const PlannedExchange& planned = step.plan->exchanges[what.exchange];
  int& collective = step.collective[what.exchange];
  if (collective < 0) {
    const std::int64_t owner = owner_of(number, what.exchange);
    if (planned.exchange.collective == Collective::serve)
      collective = open_served(planned, owner);
    else
      collective =
          planned.messages
              ? collectives_.open(planned.messages, static_cast<double>(planned.size.count), owner)
              : collectives_.open_timed(planned.exchange.group.size(), planned.seconds,
                                        planned.one_at_a_time, owner);
  }
  record_.exchange_started(worker, number, what.exchange, now);
  collectives_.join(collective, what.member, now);
}

int Lanes::open_served(const PlannedExchange& planned, std::int64_t owner) {
  if (!planned.messages) return collectives_.open_served(planned.exchange, planned.seconds, owner);
  return collectives_.open_served(planned.exchange, planned.messages,
                                  static_cast<double>(planned.size.count), owner);
}

Lanes::Finished Lanes::finish(std::int64_t owner, int member, double now) {
  const Step number = owner >> kExchangeBits;
  const auto which = static_cast<int>(owner & ((std::int64_t{1} << kExchangeBits) - 1));
  ActiveStep& step = steps_[number];
  const PlannedExchange& planned = step.plan->exchanges[which];
  const Exchange& exchange = planned.exchange;
  const int worker = exchange.group.ranks()[member];
  State& state = states_[static_cast<std::size_t>(exchange.lane) * workers_ + worker];
  state.busy = false;
  const int item = step.plan->first[worker * step.plan->lanes + exchange.lane] + state.position++;
  if (!step.done.empty()) step.done[item] = 1;
  --step.left;
  record_.exchange_ended(worker, number, which, planned, state.joined, now);
  return {worker, number, &exchange, step.plan->chained};
}

std::string Lanes::stuck() const {
  for (int worker = 0; worker < workers_; ++worker)
    for (int lane = 0; lane < lanes_; ++lane) {
      const State& state = states_[static_cast<std::size_t>(lane) * workers_ + worker];
      if (!state.busy) continue;
      const StepPlan& plan = *steps_[state.step].plan;
      const int item = plan.first[worker * plan.lanes + lane] + state.position;
      return fmt::format("worker {} never finishes step {}: {}", worker, state.step,
                         print(plan.exchanges[plan.items[item].exchange].exchange));
    }
  return "no worker can go on";
}

}  // namespace riffle::simulator
