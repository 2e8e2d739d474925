#include "runtime/values.h"

#include <algorithm>
#include <array>

#include "riffle/error.h"

namespace riffle::runtime {
namespace {

TensorView own_memory(const TensorSpec& spec) {
  return {spec.data, static_cast<std::size_t>(spec.elements), spec.dtype};
}

TensorView kept(const std::vector<Flat>& flats, const Place& place, DType dtype) {
  if (flats.empty()) return {nullptr, place.count, dtype};
  return flats[place.bucket].at(place);
}

}  // namespace

Values::Values(Memory& memory, const ModelSpec& model, Layout layout, const schedule::Needs& needs)
    : memory_(memory),
      model_(model),
      layout_(std::move(layout)),
      needs_(needs),
      state_(model.parameters.size()) {
  allocate();
  load();
}

void Values::allocate() {
  const auto make = [&](std::vector<Flat>& flats, const std::vector<Parts>& parts, bool kept) {
    flats.clear();
    for (const Parts& each : parts)
      if (kept) flats.emplace_back(memory_, each);
  };
  make(gradients_, layout_.gradient_parts, needs_.gradients);
  make(weights_, layout_.weight_parts, needs_.weights);
  make(buffers_, layout_.buffer_parts, needs_.weights);
  make(lost_, layout_.gradient_parts, needs_.rounds_gradients);
  make(reference_, layout_.weight_parts, needs_.serves || needs_.keeps_reference);
  make(statistics_, layout_.buffer_parts, needs_.serves);
}

void Values::load() {
  if (!needs_.weights) return;
  for (std::size_t i = 0; i < model_.parameters.size(); ++i)
    memory_.copy(weights(static_cast<int>(i)), own_memory(model_.parameters[i]));
  for (std::size_t i = 0; i < model_.buffers.size(); ++i)
    memory_.copy(buffer(static_cast<int>(i)), own_memory(model_.buffers[i]));
}

TensorView Values::gradient(int parameter) const {
  return kept(gradients_, layout_.gradients.at(parameter), model_.parameters[parameter].dtype);
}

TensorView Values::weights(int parameter) const {
  return kept(weights_, layout_.weights.at(parameter), model_.parameters[parameter].dtype);
}

TensorView Values::buffer(int index) const {
  return kept(buffers_, layout_.buffers.at(index), model_.buffers[index].dtype);
}

std::size_t Values::tensors() const {
  return model_.parameters.size() + model_.buffers.size();
}

TensorView Values::tensor(std::size_t index) const {
  const std::size_t parameters = model_.parameters.size();
  const bool is_parameter = index < parameters;
  if (weights_.empty())
    return own_memory(is_parameter ? model_.parameters[index] : model_.buffers[index - parameters]);
  return is_parameter ? weights(static_cast<int>(index))
                      : buffer(static_cast<int>(index - parameters));
}

// ---- the step

void Values::complete(int bucket, std::span<const char> used) {
  if (gradients_.empty()) return;
  const Bucket& of = layout_.buckets[bucket];
  // Flags of a part lie side by side: runs of equal ones are written at once.
  const auto write_run = [&](int first, int last) {
    TensorView flags = gradients_[bucket].flag_at(layout_.gradients[first]);
    flags.count = static_cast<std::size_t>(last - first + 1);
    memory_.fill(flags, used[first]);
  };
  const auto follows = [&](int p) {
    const Place& before = layout_.gradients[p - 1];
    const Place& here = layout_.gradients[p];
    return here.part == before.part && here.flag == before.flag + 1 && used[p] == used[p - 1];
  };
  int first = of.first;
  for (int p = of.first; p <= of.last; ++p) {
    if (p > first && !follows(p)) {
      write_run(first, p - 1);
      first = p;
    }
    if (!used[p]) memory_.fill(gradient(p), 0);
  }
  write_run(first, of.last);
}

bool Values::used(int parameter) const {
  const Place& place = layout_.gradients[parameter];
  return !memory_.is_zero(gradients_[place.bucket].flag_at(place));
}

std::vector<GradientPart> Values::gradients_of(int bucket) const {
  std::vector<GradientPart> parts;
  for (const TensorView& part : gradients_[bucket].parts()) parts.push_back({part, part.count});
  const Bucket& of = layout_.buckets[bucket];
  for (int p = of.first; p <= of.last; ++p) {
    TensorView& values = parts[layout_.gradients[p].part].values;
    values.count = std::min(values.count, layout_.gradients[p].flag);
  }
  return parts;
}

void Values::scale(TensorView x, double factor) const {
  memory_.combine(x, std::array{x}, std::array{factor});
}

const Parts& Values::parts_of(const Exchange& exchange) const {
  const auto& all = exchange.payload == Payload::gradient  ? layout_.gradient_parts
                    : exchange.payload == Payload::buffers ? layout_.buffer_parts
                                                           : layout_.weight_parts;
  return all[exchange.bucket];
}

const std::vector<TensorView>& Values::memory_of(const Exchange& exchange) const {
  const auto& all = exchange.payload == Payload::gradient  ? gradients_
                    : exchange.payload == Payload::buffers ? buffers_
                                                           : weights_;
  return all.at(exchange.bucket).parts();
}

const std::vector<TensorView>& Values::answered(const Exchange& exchange) const {
  const auto& all = exchange.payload == Payload::buffers ? statistics_ : reference_;
  return all.at(exchange.bucket).parts();
}

std::vector<Served> Values::served(const Program& program, Rank self) const {
  std::vector<Served> found;
  for (const Exchange& exchange : program.exchanges)
    if (exchange.collective == Collective::serve && exchange.group.size() > 1 &&
        exchange.group.contains(self))
      found.push_back({exchange, answered(exchange)});
  return found;
}

Flat Values::copied(const Parts& parts, const std::vector<TensorView>& from) {
  Flat flat = pool_.take(memory_, parts);
  for (std::size_t i = 0; i < parts.size(); ++i) memory_.copy(flat.parts()[i], from[i]);
  return flat;
}

void Values::snapshot(Flight& flight) {
  const Exchange& exchange = flight.exchange;
  const bool corrects = exchange.merge.kind == Merge::Kind::correct;
  if (exchange.payload == Payload::state) {
    flight.parts = state_parts(exchange.bucket);
    if (flight.parts.empty()) return;
    flight.travelling = pool_.take(memory_, flight.parts);
    move_state(exchange.bucket, flight.travelling.parts(), Way::gather);
    if (corrects) flight.own = copied(flight.parts, flight.travelling.parts());
    flight.data = flight.travelling.parts();
    return;
  }
  flight.parts = parts_of(exchange);
  flight.data = memory_of(exchange);
  if (exchange.wire != Wire::f32) prepare_rounding(flight);
  if (exchange.collective == Collective::serve) flight.answered = answered(exchange);
  if (flight.in_place) return;
  flight.travelling = copied(flight.parts, flight.data);
  if (corrects) flight.own = copied(flight.parts, flight.data);
  flight.data = flight.travelling.parts();
}

void Values::prepare_rounding(Flight& flight) {
  const Exchange& exchange = flight.exchange;
  flight.rounded.resize(flight.parts.size());
  if (exchange.payload == Payload::gradient) {
    const auto gradients = gradients_of(exchange.bucket);
    for (std::size_t i = 0; i < flight.rounded.size(); ++i) {
      flight.rounded[i].exact = gradients[i].whole - gradients[i].values.count;  // flags
      if (exchange.feedback) flight.rounded[i].lost = lost_.at(exchange.bucket).parts()[i];
    }
    return;
  }
  const bool agreed = needs_.agrees && exchange.merge.kind == Merge::Kind::outer;
  const Flat& reference =
      agreed ? outer_.at(exchange.bucket).agreed : reference_.at(exchange.bucket);
  if (exchange.feedback) flight.lost = pool_.take(memory_, flight.parts);
  for (std::size_t i = 0; i < flight.rounded.size(); ++i) {
    flight.rounded[i].reference = reference.parts()[i];
    flight.rounded[i].moves = needs_.one_reference;
    if (!exchange.feedback) continue;
    flight.rounded[i].lost = flight.lost.parts()[i];
    memory_.fill(flight.rounded[i].lost, 0);
  }
}

void Values::merge(Flight& flight, int self) {
  const Exchange& exchange = flight.exchange;
  if (exchange.payload != Payload::state) {
    join(flight, memory_of(exchange), self);
  } else if (!flight.parts.empty()) {
    if (state_parts(exchange.bucket) != flight.parts)
      usage_error("the optimizer's state of bucket {} has changed its size in an exchange",
                  exchange.bucket);
    Flat flat = pool_.take(memory_, flight.parts);
    move_state(exchange.bucket, flat.parts(), Way::gather);
    join(flight, flat.parts(), self);
    move_state(exchange.bucket, flat.parts(), Way::scatter);
    pool_.give_back(flight.parts, std::move(flat));
  }
  give_back(flight);
}

void Values::give_back(Flight& flight) {
  pool_.give_back(flight.parts, std::move(flight.travelling));
  pool_.give_back(flight.parts, std::move(flight.own));
  pool_.give_back(flight.parts, std::move(flight.lost));
}

void Values::join(Flight& flight, const std::vector<TensorView>& with, int self) {
  const Exchange& exchange = flight.exchange;
  const double xi = exchange.merge.xi;
  const double scale = exchange.scales.empty() ? exchange.merge.scale : exchange.scales.at(self);
  for (std::size_t i = 0; i < flight.data.size(); ++i) {
    const TensorView x = with.at(i);
    const TensorView mean = flight.data[i];
    switch (exchange.merge.kind) {
      case Merge::Kind::replace:
        if (!flight.in_place) memory_.copy(x, mean);
        break;
      case Merge::Kind::mix:
        memory_.combine(x, std::array{x, mean}, std::array{xi, 1 - xi});
        break;
      case Merge::Kind::correct: {
        const TensorView own = flight.own.parts()[i];
        if (exchange.payload == Payload::buffers)
          memory_.correct_statistics(x, mean, own);
        else
          memory_.combine(x, std::array{x, mean, own}, std::array{1.0, scale, -scale});
        break;
      }
      case Merge::Kind::outer: {
        const TensorView agreed = outer_.at(exchange.bucket).agreed.parts()[i];
        move_agreed(mean, agreed, outer_.at(exchange.bucket).momentum.parts()[i], exchange.merge);
        if (xi == 0)
          memory_.copy(x, agreed);
        else
          memory_.combine(x, std::array{x, agreed}, std::array{xi, 1 - xi});
        if (!flight.lost.empty())
          memory_.combine(x, std::array{x, flight.lost.parts()[i]}, std::array{1.0, 1 - xi});
        break;
      }
    }
  }
}

// ---- what outlives a step

void Values::move_agreed(TensorView mean, const TensorView& agreed, const TensorView& momentum,
                         const Merge& merge) {
  const TensorView distance = mean;
  memory_.combine(distance, std::array{agreed, mean}, std::array{1.0, -1.0});
  memory_.combine(momentum, std::array{momentum, distance}, std::array{merge.momentum, 1.0});
  const double rate = -merge.learning_rate;
  if (merge.nesterov)
    memory_.combine(agreed, std::array{agreed, distance, momentum},
                    std::array{1.0, rate, rate * merge.momentum});
  else
    memory_.combine(agreed, std::array{agreed, momentum}, std::array{1.0, rate});
}

void Values::start_lasting() {
  const auto begin_with = [&](const std::vector<Flat>& flats, const std::vector<Flat>& values) {
    for (std::size_t b = 0; b < flats.size(); ++b)
      for (std::size_t i = 0; i < flats[b].parts().size(); ++i)
        memory_.copy(flats[b].parts()[i], values[b].parts()[i]);
  };
  begin_with(reference_, weights_);
  begin_with(statistics_, buffers_);
  outer_.clear();
  if (!needs_.outer) return;
  for (std::size_t b = 0; b < layout_.buckets.size(); ++b) {
    outer_.push_back(
        {Flat(memory_, layout_.weight_parts[b]), Flat(memory_, layout_.weight_parts[b])});
    for (std::size_t i = 0; i < layout_.weight_parts[b].size(); ++i)
      memory_.copy(outer_[b].agreed.parts()[i], weights_[b].parts()[i]);
  }
}

std::vector<TensorView> Values::shared() const {
  std::vector<TensorView> all;
  const auto add = [&](const Flat& flat) {
    all.insert(all.end(), flat.parts().begin(), flat.parts().end());
  };
  for (const Flat& each : reference_) add(each);
  for (const Flat& each : statistics_) add(each);
  for (const Outer& each : outer_)
    if (needs_.agrees) add(each.agreed);
  return all;
}

std::vector<TensorView> Values::lasting() const {
  std::vector<TensorView> all = shared();
  const auto add = [&](const Flat& flat) {
    all.insert(all.end(), flat.parts().begin(), flat.parts().end());
  };
  for (const Outer& each : outer_) {
    if (!needs_.agrees) add(each.agreed);
    add(each.momentum);
  }
  for (const Flat& each : lost_) add(each);
  return all;
}

// ---- the optimizer's state

void Values::set_state(int parameter, std::vector<TensorView> tensors) {
  state_.at(parameter) = std::move(tensors);
}

Parts Values::state_parts(int bucket) const {
  Parts parts;
  for (int p = layout_.buckets[bucket].first; p <= layout_.buckets[bucket].last; ++p)
    for (const TensorView& tensor : state_[p]) {
      auto found = std::ranges::find(parts, tensor.dtype, &Part::dtype);
      if (found == parts.end()) found = parts.insert(parts.end(), {.dtype = tensor.dtype});
      found->count += tensor.count;
    }
  return parts;
}

// Tensors of one type lie one after the other in the flat part of their type.
void Values::move_state(int bucket, const std::vector<TensorView>& flat, Way way) {
  std::vector<std::size_t> offsets(flat.size());
  for (int p = layout_.buckets[bucket].first; p <= layout_.buckets[bucket].last; ++p)
    for (const TensorView& tensor : state_[p]) {
      const auto part = std::ranges::find(flat, tensor.dtype, &TensorView::dtype);
      std::size_t& offset = offsets[part - flat.begin()];
      const TensorView piece = part_of(*part, offset, tensor.count);
      way == Way::gather ? memory_.copy(piece, tensor) : memory_.copy(tensor, piece);
      offset += tensor.count;
    }
}

// ---- other buckets

void Values::move_to(BucketPlan plan, const schedule::Needs& needs, bool gradients) {
  needs_ = needs;
  needs_.weights |= !weights_.empty();
  const Layout old = std::exchange(layout_, Layout(model_, std::move(plan)));
  if (!gradients) gradients_.clear();  // its memory is free for the new buckets
  const auto old_gradients = std::exchange(gradients_, {});
  const auto old_weights = std::exchange(weights_, {});
  const auto old_buffers = std::exchange(buffers_, {});
  const auto old_lost = std::exchange(lost_, {});
  const auto old_reference = std::exchange(reference_, {});
  pool_ = {};
  allocate();
  const auto move = [&](const auto& from, const auto& from_flats, const auto& to,
                        const auto& to_flats) {
    for (std::size_t i = 0; !from_flats.empty() && !to_flats.empty() && i < to.size(); ++i)
      memory_.copy(to_flats[to[i].bucket].at(to[i]), from_flats[from[i].bucket].at(from[i]));
  };
  if (old_weights.empty()) load();
  move(old.weights, old_weights, layout_.weights, weights_);
  move(old.buffers, old_buffers, layout_.buffers, buffers_);
  move(old.weights, old_reference, layout_.weights, reference_);
  move(old.gradients, old_lost, layout_.gradients, lost_);
  if (gradients_.empty()) return;
  move(old.gradients, old_gradients, layout_.gradients, gradients_);
  for (std::size_t p = 0; !old_gradients.empty() && p < model_.parameters.size(); ++p)
    memory_.copy(gradients_[layout_.gradients[p].bucket].flag_at(layout_.gradients[p]),
                 old_gradients[old.gradients[p].bucket].flag_at(old.gradients[p]));
}

}  // namespace riffle::runtime
