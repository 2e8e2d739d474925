#include "runtime/state.h"

#include <fmt/format.h>

#include <algorithm>

#include "measure/cluster_change.h"
#include "riffle/error.h"
#include "runtime/checkpoint.h"
#include "runtime/overlap.h"

namespace riffle::runtime {

Needs needs_of(const Strategy& strategy, const World& world, const BucketPlan& buckets) {
  // Random groups never repeat, but always exchange the same kind of thing.
  constexpr int kDraws = 8;
  Needs needs;
  if (world.size() == 1) return needs;
  const int period = strategy.traits_with(world, buckets).period;
  for (Step step = 0; step < (period > 0 ? period : kDraws); ++step)
    for (const Exchange& exchange : strategy.program(step, world, buckets).exchanges) {
      (void)runs_in_place(exchange);  // refuses what cannot be run
      if (exchange.group.size() == 1) continue;
      needs.gradients |= exchange.payload == Payload::gradient;
      needs.weights |= exchange.payload == Payload::weight;
      needs.state |= exchange.payload == Payload::state;
      needs.lanes = std::max(needs.lanes, exchange.lane + 1);
      needs.outer |= exchange.merge.kind == Merge::Kind::outer;
    }
  return needs;
}

namespace {

BucketPlan buckets_of(const Agreement& agreed, const Strategy& strategy, const CostModel& cost) {
  if (!agreed.layers_each.empty()) return make_buckets(agreed.trace, agreed.layers_each);
  return strategy.buckets(overlapped(agreed.trace, agreed.overlap), cost, agreed.world);
}

}  // namespace
}  // namespace riffle::runtime

namespace riffle {

using runtime::Flat;

Session::State::State(Engine& on, NamedStrategy by, ModelSpec of, SessionOptions with)
    : engine(on),
      strategy(std::move(by)),
      model(std::move(of)),
      options(std::move(with)),
      own_collectives(options.collectives ? nullptr : std::make_unique<Collectives>(engine)),
      collectives(options.collectives ? *options.collectives : *own_collectives),
      control{collectives, Membership::all(engine.size()).ranks, options.timeout},
      agreed(runtime::agree(engine, control, strategy, model, options,
                            runtime::read_resumed(options.resume, strategy, model, engine))),
      racks(agreed.world.racks()),
      cost(agreed.world.cluster),
      layout(model, runtime::buckets_of(agreed, *strategy.strategy, *cost)),
      needs(runtime::needs_of(*strategy.strategy, agreed.world, layout.buckets)),
      lanes(control, needs.lanes, agreed.sensing_window > 0),
      optimizer_state(model.parameters.size()),
      recorder(engine.rank(), options.record),
      notices(engine, control.ranks, agreed.session),
      step(agreed.step),
      is_ready(model.parameters.size()),
      is_used(model.parameters.size()),
      ready_at(model.parameters.size()),
      backward_times(model.parameters.size()),
      dispatcher(engine, {collectives, racks, lanes, options.timeout}, notices, recorder) {
  allocate();
  if (options.resume.empty()) {
    if (options.broadcast) broadcast_model();
    start_outer();
  } else {
    restore();
  }
  prepare_step();
  if (agreed.sensing_window == 0 || needs.gradients || needs.outer) return;
  sensing.emplace(agreed.sensing_window, step, agreed.world.cluster);
  sensing->lateness = strategy->traits_with(agreed.world, layout.buckets).staleness;
  recorder.keep_records();
  log("sensing: " + measure::summary(agreed.world.cluster));
}

Session::State::~State() {
  dispatcher.forget_planned();
  dispatcher.drain();
  const runtime::Ending ending = dispatcher.ending(step);
  notices.end(ending, ending.culprit < 0 ? Seconds(1) : Seconds(0.2));
}

void Session::State::allocate() {
  const std::size_t buckets = layout.buckets.size();
  flights.resize(buckets);
  postponed.assign(buckets, 0);
  if (needs.gradients)
    for (const auto& parts : layout.gradient_parts) gradient_memory.emplace_back(engine, parts);
  if (!needs.weights) return;
  for (const auto& parts : layout.weight_parts) weight_memory.emplace_back(engine, parts);
  for (std::size_t i = 0; i < model.parameters.size(); ++i)
    runtime::copy(weights(static_cast<int>(i)),
                  {model.parameters[i].data, static_cast<std::size_t>(model.parameters[i].elements),
                   model.parameters[i].dtype});
  for (std::size_t i = 0; i < model.buffers.size(); ++i)
    runtime::copy(buffer(static_cast<int>(i)),
                  {model.buffers[i].data, static_cast<std::size_t>(model.buffers[i].elements),
                   model.buffers[i].dtype});
}

void Session::State::start_outer() {
  if (!needs.outer) return;
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
    auto& memory = outer.emplace_back(Flat(engine, layout.weight_parts[b]),
                                      Flat(engine, layout.weight_parts[b]));
    for (std::size_t i = 0; i < layout.weight_parts[b].size(); ++i) {
      memory.parts.push_back({memory.agreed.parts()[i], memory.momentum.parts()[i]});
      runtime::copy(memory.agreed.parts()[i], weight_memory[b].parts()[i]);
    }
  }
}

void Session::State::broadcast_model() {
  if (control.ranks.size() == 1) return;
  const Rank root = control.ranks.ranks().front();
  if (needs.weights) {
    for (const Flat& flat : weight_memory)
      for (const Elements& part : flat.parts())
        collectives.broadcast(control.ranks, root, part, control.options());
    return;
  }
  for (std::size_t i = 0; i < model.parameters.size() + model.buffers.size(); ++i)
    collectives.broadcast(control.ranks, root, value_of(i), control.options());
}

// Parameters first, then buffers, where they live now.
Elements Session::State::value_of(std::size_t tensor) const {
  const bool is_parameter = tensor < model.parameters.size();
  const std::size_t index = is_parameter ? tensor : tensor - model.parameters.size();
  if (needs.weights)
    return is_parameter ? weights(static_cast<int>(index)) : buffer(static_cast<int>(index));
  const TensorSpec& spec = is_parameter ? model.parameters[index] : model.buffers[index];
  return {spec.data, static_cast<std::size_t>(spec.elements), spec.dtype};
}

Elements Session::State::gradient(int parameter) const {
  const runtime::Place& place = layout.gradients.at(parameter);
  if (!needs.gradients) return {nullptr, place.count, model.parameters[parameter].dtype};
  return gradient_memory[place.bucket].at(place);
}

Elements Session::State::weights(int parameter) const {
  const runtime::Place& place = layout.weights.at(parameter);
  if (!needs.weights) return {nullptr, place.count, model.parameters[parameter].dtype};
  return weight_memory[place.bucket].at(place);
}

Elements Session::State::buffer(int index) const {
  const runtime::Place& place = layout.buffers.at(index);
  if (!needs.weights) return {nullptr, place.count, model.buffers[index].dtype};
  return weight_memory[place.bucket].at(place);
}

std::string Session::State::describe() const {
  std::string kept;
  for (const auto& [is_kept, what] :
       {std::pair{needs.gradients, "gradients"}, std::pair{needs.weights, "weights"},
        std::pair{needs.state, "optimizer state"}})
    if (is_kept) kept += fmt::format("{}{}", kept.empty() ? "" : ", ", what);
  return fmt::format("{} on {} workers, {} parameters in {} buckets ({}), exchanges {}",
                     strategy.spec, agreed.world.size(), model.parameters.size(),
                     layout.buckets.size(), print(agreed.trace.bytes()),
                     kept.empty() ? "nothing" : kept);
}

}  // namespace riffle
