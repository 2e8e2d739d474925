// Buckets from measured times: what the first steps showed, as rank 0 saw it.
#include <algorithm>
#include <array>
#include <numeric>

#include "riffle/error.h"
#include "runtime/overlap.h"
#include "runtime/state.h"

namespace riffle {
namespace {

// The first steps warm up: pages, caches, lazily made optimizer state.
constexpr Step kWarmUp = 2;
constexpr Step kMeasured = 5;

}  // namespace

// The time between a gradient and the one that was ready just before it is its own.
void Session::State::note_backward_times() {
  if (measured_steps >= kMeasured || agreed.world.size() == 1) return;
  ++measured_steps;
  if (measured_steps <= kWarmUp) return;
  std::vector<int> order;
  for (std::size_t p = 0; p < is_ready.size(); ++p)
    if (is_ready[p]) order.push_back(static_cast<int>(p));
  std::ranges::sort(order, {}, [&](int p) { return ready_at[p]; });
  for (std::size_t i = 1; i < order.size(); ++i)
    backward_times[order[i]] += ready_at[order[i]] - ready_at[order[i - 1]];
}

bool Session::State::relayout() {
  if (agreed.world.size() == 1 || measured_steps != kMeasured || options.trace) return false;
  ++measured_steps;  // once
  Trace trace = agreed.trace;
  const auto steps = static_cast<double>(kMeasured - kWarmUp);
  const Seconds all = std::accumulate(backward_times.begin(), backward_times.end(), Seconds{});
  // The first one that was ready has nothing to be measured from; it gets the mean.
  const Seconds mean = all / (steps * static_cast<double>(backward_times.size()));
  for (std::size_t p = 0; p < trace.layers.size(); ++p) {
    const Seconds own = backward_times[p] / steps;
    trace.layers[p].backward = own > Seconds{} ? own : mean;
    trace.layers[p].forward = trace.layers[p].backward / 2;
  }
  trace.source = "measured: gradients of the first steps";
  trace = trace_from_json(control.broadcast(to_json(trace)), "rank 0's times");
  const BucketPlan plan =
      strategy->buckets(runtime::overlapped(trace, agreed.overlap), *cost, agreed.world);
  const auto same = [](const Bucket& a, const Bucket& b) {
    return a.first == b.first && a.last == b.last;
  };
  if (std::ranges::equal(plan, layout.buckets, same)) return false;
  return move_to(std::move(trace), plan);
}

// Weights move with their tensors, and gradients where their update is still to be made; other
// gradients have been used, and their memory is free for the new buckets. What is delayed belongs
// to the old buckets: with it under way they stay.
bool Session::State::move_to(Trace trace, const BucketPlan& plan) {
  const bool postpones_all = std::ranges::count(postponed, 1) > 0;
  if (postpones_all != (std::ranges::count(postponed, 0) == 0)) return false;
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) (void)needed(static_cast<int>(b));
  // Some ranks may have something delayed where others, no delegates this time, have nothing.
  std::array<double, 1> waiting{static_cast<double>(delayed().size())};
  control.all_reduce(waiting, Reduction::sum);
  if (waiting.front() > 0 || needs.outer) return false;
  dispatcher.forget_planned();
  const runtime::Layout old = std::move(layout);
  if (!postpones_all) gradient_memory.clear();
  const auto old_gradients = std::move(gradient_memory);
  const auto old_weights = std::move(weight_memory);
  agreed.trace = std::move(trace);
  layout = runtime::Layout(model, plan);
  gradient_memory.clear();
  weight_memory.clear();
  flights.clear();
  if (needs.gradients)
    for (const auto& parts : layout.gradient_parts) gradient_memory.emplace_back(engine, parts);
  if (needs.weights)
    for (const auto& parts : layout.weight_parts) weight_memory.emplace_back(engine, parts);
  const auto move = [](const auto& from, const auto& from_memory, const auto& to,
                       const auto& to_memory) {
    if (from_memory.empty()) return;
    for (std::size_t i = 0; i < to.size(); ++i)
      runtime::copy(to_memory[to[i].bucket].at(to[i]), from_memory[from[i].bucket].at(from[i]));
  };
  move(old.gradients, old_gradients, layout.gradients, gradient_memory);
  for (std::size_t p = 0; !old_gradients.empty() && p < model.parameters.size(); ++p) {
    const runtime::Place& from = old.gradients[p];
    const runtime::Place& to = layout.gradients[p];
    const double flag = runtime::value_at(old_gradients[from.bucket].parts()[from.part], from.flag);
    runtime::set_value(gradient_memory[to.bucket].parts()[to.part], to.flag, flag);
  }
  move(old.weights, old_weights, layout.weights, weight_memory);
  move(old.buffers, old_weights, layout.buffers, weight_memory);
  pool = {};
  flights.resize(layout.buckets.size());
  postponed.assign(layout.buckets.size(), postpones_all ? 1 : 0);
  prepare_step();
  for (runtime::Passed& each : passed) each.forward = true;
  if (sensing) {
    sensing->drift.forget();
    sensing->restart(step, recorder.waited());
  }
  return true;
}

}  // namespace riffle
