// What concerns the whole model, between steps: averages, consensus.
#include <algorithm>
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

namespace {

// The average travels in pieces: a copy of the whole model would be the most memory that training
// needs. Small enough not to count, large enough for the network.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

Elements part_of(const Elements& of, std::size_t first, std::size_t count) {
  return {of.data + first * static_cast<std::size_t>(size_of(of.dtype).count), count, of.dtype};
}

}  // namespace

// Tensors of one type that follow each other share a piece; one that is larger than a piece has
// several.
template <typename Visit>
void Session::State::for_each_average(std::size_t first, const Visit& visit) {
  struct Part {
    std::size_t tensor = 0;
    std::size_t offset = 0;  // elements into the tensor
    Elements own;
    Elements average;
  };
  const Buffer buffer = engine.allocate(kPieceBytes);
  std::vector<Part> parts;
  Elements piece{buffer.data(), 0, DType::f32};
  const auto send = [&] {
    if (parts.empty()) return;
    collectives.all_reduce(control.ranks, piece, control.options());
    for (const Part& part : parts) visit(part.tensor, part.offset, part.average, part.own);
    parts.clear();
    piece.count = 0;
  };
  for (std::size_t t = first; t < model.parameters.size() + model.buffers.size(); ++t) {
    const Elements tensor = value_of(t);
    const std::size_t most = kPieceBytes / static_cast<std::size_t>(size_of(tensor.dtype).count);
    if (piece.dtype != tensor.dtype) send();
    piece.dtype = tensor.dtype;
    for (std::size_t offset = 0; offset < tensor.count;) {
      if (piece.count == most) send();
      const std::size_t count = std::min(tensor.count - offset, most - piece.count);
      const Elements own = part_of(tensor, offset, count);
      const Elements average = part_of(piece, piece.count, count);
      runtime::copy(average, own);
      parts.push_back({t, offset, own, average});
      piece.count += count;
      offset += count;
    }
  }
  send();
}

// Where all workers have the same parameters they are their average, bit for bit.
std::size_t Session::State::first_to_average() const {
  const bool equal = strategy->traits_with(agreed.world, layout.buckets).exact;
  return equal ? model.parameters.size() : 0;
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
  for_each_average(first_to_average(), [](std::size_t, std::size_t, Elements average,
                                          Elements own) { runtime::copy(own, average); });
}

void Session::State::averaged(std::span<std::byte* const> into) {
  const std::size_t tensors = model.parameters.size() + model.buffers.size();
  if (into.size() != tensors)
    usage_error("averaged: {} places for {} parameters and buffers", into.size(), tensors);
  dispatcher.throw_if_failed();
  settle();
  const auto write = [&](std::size_t tensor, std::size_t offset, Elements from, Elements) {
    if (into[tensor] == nullptr) return;
    std::byte* const to =
        into[tensor] + offset * static_cast<std::size_t>(size_of(from.dtype).count);
    std::memcpy(to, from.data, runtime::bytes_of(from));
  };
  const std::size_t first = first_to_average();
  for (std::size_t tensor = 0; tensor < first; ++tensor) write(tensor, 0, value_of(tensor), {});
  for_each_average(first, write);
}

double Session::State::consensus_distance() {
  dispatcher.throw_if_failed();
  settle();
  double apart = 0;
  double length = 0;
  for_each_average(0, [&](std::size_t tensor, std::size_t, Elements average, Elements own) {
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
