#include "runtime/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "riffle/error.h"
#include "runtime/whole_model.h"

namespace riffle {
namespace {

BucketPlan buckets_of(const runtime::Agreement& agreed, const Strategy& strategy,
                      const CostModel& cost) {
  if (!agreed.layers_each.empty()) return make_buckets(agreed.trace, agreed.layers_each);
  return strategy.buckets(runtime::overlapped(agreed.trace, agreed.overlap), cost, agreed.world);
}

schedule::Overlap::Mode mode_of(OverlapMode mode) {
  switch (mode) {
    case OverlapMode::full:
      return schedule::Overlap::Mode::full;
    case OverlapMode::watched:
      return schedule::Overlap::Mode::watched;
    case OverlapMode::none:
      break;
  }
  return schedule::Overlap::Mode::none;
}

// Of buckets that carry the model's buffers.
schedule::Needs needs_of(const Strategy& strategy, const World& world, const BucketPlan& buckets) {
  if (world.size() == 1) return {};
  return schedule::needs_of(schedule::programs_of(strategy, world, buckets));
}

}  // namespace

Session::State::State(std::unique_ptr<runtime::Exchanger> by, NamedStrategy strategy, ModelSpec of,
                      SessionOptions with)
    : exchanger(std::move(by)),
      named(std::move(strategy)),
      model(std::move(of)),
      options(std::move(with)),
      agreed(runtime::agree(*exchanger, named, model, options,
                            runtime::read_resumed(options.resume, identity()))),
      cost(agreed.world.cluster),
      plan(runtime::Layout(model, buckets_of(agreed, *named.strategy, *cost)).buckets),
      needs(needs_of(*named.strategy, agreed.world, plan)),
      recorder(exchanger->rank(), options.record),
      values(exchanger->memory(), model, runtime::Layout(model, plan), needs),
      steps(*exchanger, values, model.parameters.size()),
      overlap(needs, mode_of(options.overlap)) {
  const bool senses = agreed.sensing_window > 0;
  exchanger->open({.session = agreed.session,
                   .programs = agreed.world.size() == 1
                                   ? std::vector<Program>{}
                                   : schedule::programs_of(*named.strategy, agreed.world, plan),
                   .needs = needs,
                   .world = agreed.world,
                   .senses = senses,
                   .recorder = recorder});
  if (options.resume.empty()) {
    if (options.broadcast) broadcast_model();
    values.start_outer();
    begin_step(0);
  } else {
    const auto flights = runtime::restore(options.resume, exchanger->rank(), agreed.step, values);
    begin_step(agreed.step);
    for (const runtime::FlightPtr& flight : flights) steps.resume(flight);
  }
  runtime::Watched& self = *this;
  if (senses && !needs.gradients && !needs.outer)
    sensing.emplace(*exchanger, recorder, self, agreed.sensing_window);
}

Session::State::~State() {
  exchanger->end(step());
}

int Session::State::checked(int parameter) const {
  if (parameter < 0 || parameter >= static_cast<int>(model.parameters.size()))
    usage_error("parameter {}: there are {}", parameter, model.parameters.size());
  return parameter;
}

runtime::Identity Session::State::identity() const {
  return {named, model, exchanger->rank(), exchanger->ranks().size()};
}

void Session::State::broadcast_model() {
  if (agreed.world.size() == 1) return;
  for (std::size_t i = 0; i < values.tensors(); ++i) exchanger->broadcast(values.tensor(i));
}

void Session::State::begin_step(Step step, bool forward) {
  Program program;
  if (agreed.world.size() > 1)
    program = schedule::program_of(strategy(), step, agreed.world, buckets());
  if (!overlap.postpones()) program = schedule::without_postponing(std::move(program));
  steps.begin(step, program, *cost, forward);
}

void Session::State::end_step() {
  exchanger->throw_if_failed();
  steps.step_done();
  exchanger->throw_if_failed();
  recorder.end_step();
  overlap.end_step();
  begin_step(step() + 1);
  if (sensing) sensing->look();
}

// ---- gradients as the update will see them

double Session::State::gradient_norm() {
  if (!needs.gradients) usage_error("the gradients of {} are the adapter's own", named.spec);
  double whole = 0;
  double shared = 0;
  bool is_shared = false;
  steps.for_each_gradient([&](TensorView gradients, bool scattered) {
    (scattered ? shared : whole) += exchanger->memory().square_sum(gradients);
  });
  for (int b = 0; b < steps.machine().buckets(); ++b)
    is_shared |= steps.machine().scattered(b) != nullptr;
  if (is_shared) exchanger->all_reduce(std::span(&shared, 1), Reduction::sum);
  return std::sqrt(whole + shared);
}

void Session::State::scale_gradients(double factor) {
  if (!needs.gradients) usage_error("the gradients of {} are the adapter's own", named.spec);
  steps.for_each_gradient(
      [&](TensorView gradients, bool /*scattered*/) { values.scale(gradients, factor); });
}

// ---- the whole model

std::size_t Session::State::first_to_average() const {
  const bool equal = strategy().traits_with(agreed.world, buckets()).exact;
  return equal ? model.parameters.size() : 0;
}

void Session::State::finish() {
  exchanger->throw_if_failed();
  steps.settle();
  // Delta rules keep the mean with or without their merge; an interpolation with old values would
  // only lose steps.
  for (const runtime::FlightPtr& flight : steps.delayed()) steps.drop(*flight);
  exchanger->meet(step());
  if (agreed.world.size() == 1) return;
  runtime::for_each_average(
      *exchanger, values, first_to_average(),
      [&](const runtime::Averaged& each) { exchanger->memory().copy(each.own, each.average); });
}

void Session::State::averaged(std::span<std::byte* const> into) {
  if (into.size() != values.tensors())
    usage_error("averaged: {} places for {} parameters and buffers", into.size(), values.tensors());
  exchanger->throw_if_failed();
  steps.settle();
  const auto write = [&](std::size_t tensor, std::size_t offset, TensorView from) {
    if (into[tensor] == nullptr) return;
    const TensorView whole{into[tensor], offset + from.count, from.dtype};
    exchanger->memory().copy(runtime::part_of(whole, offset, from.count), from);
  };
  const std::size_t first = first_to_average();
  for (std::size_t tensor = 0; tensor < first; ++tensor) write(tensor, 0, values.tensor(tensor));
  runtime::for_each_average(*exchanger, values, first, [&](const runtime::Averaged& each) {
    write(each.tensor, each.offset, each.average);
  });
}

double Session::State::consensus_distance() {
  exchanger->throw_if_failed();
  steps.settle();
  const double distance = runtime::consensus_distance(*exchanger, values, model.parameters.size());
  recorder.consensus(distance);
  return distance;
}

std::vector<std::byte> Session::State::save() {
  exchanger->throw_if_failed();
  steps.settle();
  return runtime::write_checkpoint(identity(), agreed, step(), values, steps.delayed());
}

// ---- other buckets, another world

// Buckets from measured times: what the first steps showed, as rank 0 saw it.
bool Session::State::relayout() {
  runtime::Arrivals& arrivals = steps.arrivals();
  if (agreed.world.size() == 1 || options.trace || !arrivals.is_measured() || is_measured)
    return false;
  is_measured = true;
  Trace trace = trace_from_json(
      runtime::broadcast(*exchanger, to_json(arrivals.measured(agreed.trace))), "rank 0's times");
  BucketPlan next =
      strategy().buckets(runtime::overlapped(trace, agreed.overlap), *cost, agreed.world);
  const auto same = [](const Bucket& a, const Bucket& b) {
    return a.first == b.first && a.last == b.last;
  };
  if (std::ranges::equal(next, buckets(), same)) return false;
  return move_to(std::move(trace), std::move(next));
}

// Weights move with their tensors, and gradients where their update is still to be made; other
// gradients have been used. What is delayed belongs to the old buckets: with it under way they
// stay.
bool Session::State::move_to(Trace trace, BucketPlan next) {
  int postponed = 0;
  for (int b = 0; b < steps.machine().buckets(); ++b) {
    postponed += steps.machine().is_postponed(b) ? 1 : 0;
    (void)steps.before_forward(b);
  }
  if (postponed != 0 && postponed != steps.machine().buckets()) return false;
  // Some ranks may have something delayed where others, no delegates this time, have nothing.
  double waiting = static_cast<double>(steps.delayed().size());
  exchanger->all_reduce(std::span(&waiting, 1), Reduction::sum);
  if (waiting > 0 || needs.outer) return false;
  exchanger->forget_planned();
  const Step now = step();
  agreed.trace = std::move(trace);
  values.move_to(std::move(next), postponed != 0);
  steps.reset(postponed != 0);
  begin_step(now, true);
  if (sensing) sensing->restart();
  return true;
}

bool Session::State::is_under_way(Step at, int lane) const {
  return steps.is_under_way(at, lane);
}

void Session::State::come_to_rest() {
  for (int b = 0; b < steps.machine().buckets(); ++b) (void)steps.before_forward(b);
  (void)steps.delayed();
}

bool Session::State::change_world(Cluster cluster) {
  World next(std::move(cluster), agreed.world.membership);
  const schedule::Needs now = needs_of(strategy(), next, buckets());
  if (now.gradients || now.outer || (now.state && !needs.state)) return false;
  come_to_rest();
  exchanger->forget_planned();
  agreed.world = std::move(next);
  cost.emplace(agreed.world.cluster);
  exchanger->change(agreed.world);
  begin_step(step(), true);
  return true;
}

void Session::State::log(std::string what) {
  if (exchanger->rank() == exchanger->ranks().ranks().front()) {
    const std::string line = fmt::format("step {}: {}", step(), what);
    if (options.log)
      options.log(line);
    else
      fmt::print(stderr, "riffle: {}\n", line);
  }
  sensed.push_back({step(), std::move(what)});
}

std::string Session::State::describe() const {
  std::string kept;
  for (const auto& [is_kept, what] :
       {std::pair{needs.gradients, "gradients"}, std::pair{needs.weights, "weights"},
        std::pair{needs.state, "optimizer state"}})
    if (is_kept) kept += fmt::format("{}{}", kept.empty() ? "" : ", ", what);
  return fmt::format("{} on {} workers, {} parameters in {} buckets ({}), exchanges {}", named.spec,
                     agreed.world.size(), model.parameters.size(), buckets().size(),
                     print(agreed.trace.bytes()), kept.empty() ? "nothing" : kept);
}

}  // namespace riffle
