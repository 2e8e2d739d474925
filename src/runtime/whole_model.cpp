// What concerns the whole model, between steps: averages, consensus.
#include <cmath>
#include <cstring>

#include "riffle/error.h"
#include "runtime/state.h"

namespace riffle {

using runtime::FlightPtr;

void Session::State::settle() {
  for (std::size_t b = 0; b < layout.buckets.size(); ++b)
    if (needed(static_cast<int>(b)))
      usage_error("the update of bucket {} is postponed: make it where needed() says so, first", b);
}

std::vector<FlightPtr> Session::State::delayed() {
  std::vector<FlightPtr> all;
  for (const auto& each : flights)
    for (const FlightPtr& flight : each)
      if (flight->step < step) all.push_back(flight);
  for (const FlightPtr& flight : all) dispatcher.wait(*flight);
  return all;
}

template <typename Visit>
void Session::State::for_each_average(const Visit& visit) {
  const auto visit_bucket = [&](std::size_t bucket, const runtime::Flat& flat, auto&& action) {
    for (std::size_t p = 0; p < model.parameters.size(); ++p)
      if (layout.weights[p].bucket == static_cast<int>(bucket))
        action(p, flat.at(layout.weights[p]));
    for (std::size_t i = 0; i < model.buffers.size(); ++i)
      if (layout.buffers[i].bucket == static_cast<int>(bucket))
        action(model.parameters.size() + i, flat.at(layout.buffers[i]));
  };
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
    runtime::Flat flat = pool.take(engine, layout.weight_parts[b]);
    visit_bucket(b, flat, [&](std::size_t tensor, Elements place) {
      runtime::copy(place, value_of(tensor));
    });
    for (const Elements& part : flat.parts())
      collectives.all_reduce(control.ranks, part, control.options());
    visit_bucket(b, flat, [&](std::size_t tensor, Elements place) {
      visit(tensor, place, value_of(tensor));
    });
    pool.give_back(layout.weight_parts[b], std::move(flat));
  }
}

void Session::State::finish() {
  dispatcher.throw_if_failed();
  settle();
  for (const FlightPtr& flight : delayed()) {
    // Delta rules keep the mean with or without their merge; an interpolation with old values
    // would only lose steps.
    std::erase(flights[flight->exchange.bucket], flight);
  }
  notices.meet(step, options.timeout);
  if (agreed.world.size() == 1) return;
  const bool equal = strategy->traits_with(agreed.world, layout.buckets).exact;
  for_each_average([&](std::size_t tensor, Elements average, Elements own) {
    if (tensor >= model.parameters.size() || !equal) runtime::copy(own, average);
  });
}

void Session::State::averaged(std::span<std::byte* const> into) {
  const std::size_t tensors = model.parameters.size() + model.buffers.size();
  if (into.size() != tensors)
    usage_error("averaged: {} places for {} parameters and buffers", into.size(), tensors);
  dispatcher.throw_if_failed();
  settle();
  const bool equal = strategy->traits_with(agreed.world, layout.buckets).exact;
  for_each_average([&](std::size_t tensor, Elements average, Elements own) {
    if (into[tensor] == nullptr) return;
    const bool as_it_is = equal && tensor < model.parameters.size();
    const Elements& from = as_it_is ? own : average;
    std::memcpy(into[tensor], from.data, runtime::bytes_of(from));
  });
}

double Session::State::consensus_distance() {
  dispatcher.throw_if_failed();
  settle();
  double apart = 0;
  double length = 0;
  for_each_average([&](std::size_t tensor, Elements average, Elements own) {
    if (tensor >= model.parameters.size()) return;
    length += runtime::square_sum(average);
    runtime::subtract(average, own);
    apart += runtime::square_sum(average);
  });
  control.all_reduce(std::span(&apart, 1), Reduction::mean);
  const double distance = length > 0 ? std::sqrt(apart / length) : std::sqrt(apart);
  recorder.consensus(distance);
  return distance;
}

}  // namespace riffle
