// The points of a step, in order: before_forward, bucket_ready, backward_done, before_step, the
// update, after_step and bucket_stepped, step_done. At one point merges come before snapshots.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "collective/choice.h"
#include "collective/reduce.h"
#include "riffle/error.h"
#include "runtime/state.h"

namespace riffle {

using runtime::Flight;
using runtime::FlightPtr;
using runtime::Passed;

void Session::State::check_bucket(int bucket) const {
  if (bucket < 0 || bucket >= static_cast<int>(layout.buckets.size()))
    usage_error("bucket {}: there are {}", bucket, layout.buckets.size());
}

void Session::State::check_parameter(int parameter) const {
  if (parameter < 0 || parameter >= static_cast<int>(model.parameters.size()))
    usage_error("parameter {}: there are {}", parameter, model.parameters.size());
}

void Session::State::reset_step() {
  backward_over = false;
  passed.assign(layout.buckets.size(), {});
  for (std::size_t b = 0; b < passed.size(); ++b)
    passed[b].missing = layout.buckets[b].last - layout.buckets[b].first + 1;
  std::ranges::fill(is_ready, 0);
}

void Session::State::prepare_step() {
  reset_step();
  postpones.assign(layout.buckets.size(), 0);
  per_bucket = false;
  if (agreed.world.size() == 1) return;
  const Program program = strategy->program(step, agreed.world, layout.buckets);
  for (std::size_t i = 0; i < program.exchanges.size(); ++i) {
    const Exchange& exchange = program.exchanges[i];
    if (exchange.group.size() == 1 || !exchange.group.contains(engine.rank())) continue;
    auto flight = std::make_shared<Flight>();
    flight->exchange = exchange;
    flight->step = step;
    flight->index = static_cast<int>(i);
    flight->in_place = runtime::runs_in_place(exchange);
    const Bytes size = payload_bytes(layout.buckets.at(exchange.bucket).bytes, exchange.payload);
    flight->exchange.algorithm = collective::algorithm_for(engine, *cost, exchange, size);
    flight->sent = Bytes{std::llround(cost->traffic(exchange, size).bytes)};
    if (exchange.payload == Payload::gradient && exchange.due > riffle::before_step())
      postpones[exchange.bucket] = 1;
    per_bucket |= exchange.start == Start::bucket_stepped;
    flights[exchange.bucket].push_back(flight);
    dispatcher.plan(std::move(flight));
  }
  for (const auto& each : flights)
    for (const FlightPtr& flight : each)
      if (postpones[flight->exchange.bucket] && flight->step == step &&
          (flight->exchange.start == Start::bucket_stepped ||
           flight->exchange.due == riffle::after_step()))
        usage_error("cannot run the exchange \"{}\": the update of its bucket is postponed",
                    print(flight->exchange));
}

void Session::State::start_flight(Flight& flight) {
  const int bucket = flight.exchange.bucket;
  switch (flight.exchange.payload) {
    case Payload::gradient:
      runtime::take_snapshot(flight, engine, pool, layout.gradient_parts[bucket],
                             gradient_memory.at(bucket).parts());
      break;
    case Payload::weight:
    case Payload::buffers:
      runtime::take_snapshot(flight, engine, pool, layout.weight_parts[bucket],
                             weight_memory.at(bucket).parts());
      break;
    case Payload::state: {
      const auto parts = state_parts(bucket);
      if (parts.empty()) break;
      runtime::Flat flat = pool.take(engine, parts);
      gather_state(bucket, flat.parts());
      runtime::take_snapshot(flight, engine, pool, parts, flat.parts());
      pool.give_back(parts, std::move(flat));
      break;
    }
  }
  dispatcher.start(flight);
}

void Session::State::start_flights(int bucket, Start start) {
  for (const FlightPtr& flight : flights[bucket])
    if (flight->starts_at(step, start)) start_flight(*flight);
}

void Session::State::merge(Flight& flight) {
  const int bucket = flight.exchange.bucket;
  const int self = flight.exchange.group.index_of(engine.rank());
  switch (flight.exchange.payload) {
    case Payload::gradient:
      runtime::merge_flight(flight, gradient_memory[bucket].parts(), self, {});
      break;
    case Payload::weight:
    case Payload::buffers:
      runtime::merge_flight(flight, weight_memory[bucket].parts(), self,
                            needs.outer ? outer[bucket].parts : std::vector<runtime::OuterState>{});
      break;
    case Payload::state: {
      if (flight.parts.empty()) break;
      if (state_parts(bucket) != flight.parts)
        usage_error("the optimizer's state of bucket {} has changed its size in an exchange",
                    bucket);
      runtime::Flat flat = pool.take(engine, flight.parts);
      gather_state(bucket, flat.parts());
      runtime::merge_flight(flight, flat.parts(), self, {});
      scatter_state(bucket, flat.parts());
      pool.give_back(flight.parts, std::move(flat));
      break;
    }
  }
}

// A scattered gradient goes on to be gathered on the same lane; nobody needs it before.
bool Session::State::goes_on(const Flight& flight) const {
  return flight.in_place && flight.exchange.collective == Collective::reduce_scatter &&
         std::ranges::any_of(flights[flight.exchange.bucket], [&](const FlightPtr& other) {
           return other->step == flight.step && other->index > flight.index &&
                  other->exchange.lane == flight.exchange.lane &&
                  other->exchange.payload == flight.exchange.payload &&
                  other->exchange.collective == Collective::all_gather;
         });
}

void Session::State::merge_due(int bucket, DuePoint point) {
  std::vector<FlightPtr> due;
  {
    const std::scoped_lock lock(mutex);
    for (const FlightPtr& flight : flights[bucket]) {
      if (!flight->due_at(step, point)) continue;
      if (point != DuePoint::before_step || !goes_on(*flight)) due.push_back(flight);
    }
  }
  for (const FlightPtr& flight : due) {
    dispatcher.wait(*flight);
    const std::scoped_lock lock(mutex);
    merge(*flight);
    pool.give_back(flight->parts, std::move(flight->travelling));
    pool.give_back(flight->parts, std::move(flight->own));
    std::erase(flights[bucket], flight);
  }
}

bool Session::State::is_due(int bucket, DuePoint point) const {
  return std::ranges::any_of(flights[bucket],
                             [&](const FlightPtr& each) { return each->due_at(step, point); });
}

bool Session::State::needed(int bucket) {
  check_bucket(bucket);
  if (!passed[bucket].forward) {
    merge_due(bucket, DuePoint::before_forward);
    const std::scoped_lock lock(mutex);
    // What went on without a wait is done now, too.
    std::erase_if(flights[bucket], [&](const FlightPtr& each) {
      return each->step < step && each->due_at(step - 1, DuePoint::before_step);
    });
    passed[bucket].forward = true;
  }
  return postponed[bucket] != 0;
}

std::optional<int> Session::State::ready(int parameter) {
  check_parameter(parameter);
  const std::scoped_lock lock(mutex);
  is_used[parameter] = 1;
  if (!sync) return std::nullopt;
  const int bucket = layout.bucket_of[parameter];
  if (is_ready[parameter] || passed[bucket].ready)
    usage_error(
        "the gradient of {} came a second time in step {}: accumulate with no_sync in all but the "
        "last backward, or call step after each",
        model.parameters[parameter].name, step);
  if (!passed[bucket].forward && is_due(bucket, DuePoint::before_forward))
    usage_error("needed({}) was not called before the forward of step {} used {}", bucket, step,
                model.parameters[parameter].name);
  is_ready[parameter] = 1;
  ready_at[parameter] = Clock::now();
  if (--passed[bucket].missing > 0) return std::nullopt;
  reach_ready(bucket);
  return bucket;
}

void Session::State::reach_ready(int bucket) {
  Passed& at = passed[bucket];
  at.ready = true;
  if (needs.gradients) {
    for (int p = layout.buckets[bucket].first; p <= layout.buckets[bucket].last; ++p) {
      const runtime::Place& place = layout.gradients[p];
      runtime::set_value(gradient_memory[bucket].parts()[place.part], place.flag, is_used[p]);
      const Elements own = gradient_memory[bucket].at(place);
      if (!is_used[p]) std::memset(own.data, 0, runtime::bytes_of(own));
    }
  }
  start_flights(bucket, Start::bucket_ready);
}

void Session::State::backward_done() {
  if (backward_over) return;
  // Layers that were not used may not have been asked for.
  for (std::size_t b = 0; b < passed.size(); ++b) (void)needed(static_cast<int>(b));
  const std::scoped_lock lock(mutex);
  backward_over = true;
  for (std::size_t b = 0; b < passed.size(); ++b)
    if (!passed[b].ready) reach_ready(static_cast<int>(b));
  for (std::size_t b = 0; b < passed.size(); ++b)
    start_flights(static_cast<int>(b), Start::backward_done);
}

bool Session::State::before_step(int bucket) {
  check_bucket(bucket);
  (void)needed(bucket);
  if (!passed[bucket].ready) backward_done();
  if (!passed[bucket].before_step) {
    merge_due(bucket, DuePoint::before_step);
    passed[bucket].before_step = true;
  }
  return postpones[bucket] == 0;
}

void Session::State::stepped(int bucket) {
  check_bucket(bucket);
  if (postponed[bucket]) {
    postponed[bucket] = 0;
    return;
  }
  if (passed[bucket].stepped) return;
  (void)before_step(bucket);
  merge_due(bucket, DuePoint::after_step);
  const std::scoped_lock lock(mutex);
  passed[bucket].stepped = true;
  start_flights(bucket, Start::bucket_stepped);
}

void Session::State::end_step() {
  dispatcher.throw_if_failed();
  for (std::size_t b = 0; b < passed.size(); ++b)
    if (postponed[b] && !passed[b].forward)
      usage_error("the update of bucket {} was postponed to needed({}), which was not called", b,
                  b);
  std::ranges::fill(postponed, 0);
  backward_done();
  note_backward_times();
  for (std::size_t b = 0; b < passed.size(); ++b)
    if (before_step(static_cast<int>(b))) stepped(static_cast<int>(b));
  {
    const std::scoped_lock lock(mutex);
    for (std::size_t b = 0; b < passed.size(); ++b)
      start_flights(static_cast<int>(b), Start::step_done);
  }
  dispatcher.throw_if_failed();
  {
    const std::scoped_lock lock(mutex);
    std::ranges::fill(is_used, 0);
    postponed = postpones;
    recorder.end_step();
    ++step;
    prepare_step();
  }
  sense();
}

namespace {

// The gradients of a part, without the flags after them; of those the own slice where only that is
// valid yet.
Elements valid_gradients(const Elements& part, std::size_t flags, const Flight* scattered,
                         Rank self) {
  if (scattered == nullptr) return {part.data, flags, part.dtype};
  const Group& group = scattered->exchange.group;
  const Slice own = slice_of(part.count, part.dtype, group.size(), group.index_of(self));
  const std::size_t end = std::min(own.begin + own.count, flags);
  const auto size = static_cast<std::size_t>(size_of(part.dtype).count);
  if (end <= own.begin) return {part.data, 0, part.dtype};
  return {part.data + own.begin * size, end - own.begin, part.dtype};
}

}  // namespace

// Calls `visit` with all gradients that the update will see, each on one rank of `sharing`.
template <typename Visit>
void Session::State::for_each_gradient(const Visit& visit) {
  if (!needs.gradients) usage_error("the gradients of {} are the adapter's own", strategy.spec);
  for (std::size_t b = 0; b < passed.size(); ++b) {
    (void)before_step(static_cast<int>(b));
    FlightPtr scattered;
    for (const FlightPtr& flight : flights[b])
      if (flight->step == step && goes_on(*flight)) scattered = flight;
    if (scattered) dispatcher.wait(*scattered);
    for (std::size_t i = 0; i < layout.gradient_parts[b].size(); ++i) {
      std::size_t flags = layout.gradient_parts[b][i].count;
      for (int p = layout.buckets[b].first; p <= layout.buckets[b].last; ++p)
        if (layout.gradients[p].part == static_cast<int>(i))
          flags = std::min(flags, layout.gradients[p].flag);
      visit(valid_gradients(gradient_memory[b].parts()[i], flags, scattered.get(), engine.rank()),
            scattered != nullptr);
    }
  }
}

double Session::State::gradient_norm() {
  double whole = 0;
  double shared = 0;
  bool is_shared = false;
  for_each_gradient([&](const Elements& gradients, bool scattered) {
    (scattered ? shared : whole) += runtime::square_sum(gradients);
    is_shared |= scattered;
  });
  if (is_shared) control.all_reduce(std::span(&shared, 1), Reduction::sum);
  return std::sqrt(whole + shared);
}

void Session::State::scale_gradients(double factor) {
  for_each_gradient([&](const Elements& gradients, bool /*scattered*/) {
    collective::scale_in_place(gradients.data, factor, gradients.count, gradients.dtype);
  });
}

bool Session::State::used(int parameter) const {
  check_parameter(parameter);
  if (!needs.gradients) return is_used[parameter] != 0;
  const runtime::Place& place = layout.gradients[parameter];
  return runtime::value_at(gradient_memory[place.bucket].parts()[place.part], place.flag) != 0;
}

std::vector<runtime::Part> Session::State::state_parts(int bucket) const {
  std::vector<runtime::Part> parts;
  for (int p = layout.buckets[bucket].first; p <= layout.buckets[bucket].last; ++p)
    for (const Elements& tensor : optimizer_state[p]) {
      auto found = std::ranges::find(parts, tensor.dtype, &runtime::Part::dtype);
      if (found == parts.end())
        found = parts.insert(parts.end(), {.dtype = tensor.dtype, .count = 0});
      found->count += tensor.count;
    }
  return parts;
}

namespace {

// Copies between a flat part and the tensors of its type, one after the other.
template <typename Copy>
void for_each_piece(const std::vector<Elements>& flat, const std::vector<Elements>& tensors,
                    std::vector<std::size_t>& offsets, const Copy& copy) {
  for (const Elements& tensor : tensors) {
    const auto part = std::ranges::find(flat, tensor.dtype, &Elements::dtype);
    std::size_t& offset = offsets[part - flat.begin()];
    const std::size_t bytes = runtime::bytes_of(tensor);
    copy(Elements{part->data + offset, tensor.count, tensor.dtype}, tensor);
    offset += bytes;
  }
}

}  // namespace

void Session::State::gather_state(int bucket, const std::vector<Elements>& into) const {
  std::vector<std::size_t> offsets(into.size());
  for (int p = layout.buckets[bucket].first; p <= layout.buckets[bucket].last; ++p)
    for_each_piece(into, optimizer_state[p], offsets,
                   [](Elements flat, Elements tensor) { runtime::copy(flat, tensor); });
}

void Session::State::scatter_state(int bucket, const std::vector<Elements>& from) const {
  std::vector<std::size_t> offsets(from.size());
  for (int p = layout.buckets[bucket].first; p <= layout.buckets[bucket].last; ++p)
    for_each_piece(from, optimizer_state[p], offsets,
                   [](Elements flat, Elements tensor) { runtime::copy(tensor, flat); });
}

}  // namespace riffle
