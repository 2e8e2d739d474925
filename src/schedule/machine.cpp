#include "schedule/machine.h"

#include <algorithm>
#include <utility>

#include "riffle/error.h"

namespace riffle::schedule {

const Machine::Bucket& Machine::at(int bucket) const {
  if (bucket < 0 || bucket >= buckets()) usage_error("bucket {}: there are {}", bucket, buckets());
  return at_[bucket];
}

Machine::Bucket& Machine::at(int bucket) {
  return const_cast<Bucket&>(std::as_const(*this).at(bucket));
}

std::vector<Flight> Machine::begin(Step step, const Program& program, int buckets, bool forward) {
  step_ = step;
  backward_done_ = per_bucket_ = false;
  at_.resize(static_cast<std::size_t>(buckets));
  for (Bucket& each : at_) {
    each.forward = forward;
    each.ready = each.before_step = each.stepped = each.postpones = false;
    std::erase_if(each.flights, [&](const Flight& flight) { return flight.id.step == step; });
  }
  std::vector<Flight> flights;
  for (int i = 0; i < static_cast<int>(program.exchanges.size()); ++i) {
    const Exchange& exchange = program.exchanges[i];
    if (exchange.group.size() < 2 || !exchange.group.contains(self_)) continue;
    Bucket& of = at(exchange.bucket);
    of.postpones |= schedule::postpones(exchange);
    per_bucket_ |= exchange.start == Start::bucket_stepped;
    Flight flight{{step, i}, exchange, travels_in_place(exchange), {}};
    for (const Flight& earlier : of.flights) {
      if (earlier.id.step != step) continue;
      const bool in_flight = chains_in_flight(earlier.exchange, exchange);
      if (const std::string why = refusal(earlier.exchange, exchange); in_flight && !why.empty())
        usage_error("cannot run the exchange \"{}\": {}", print(exchange), why);
      if (in_flight || continues(earlier.exchange, exchange)) flight.after.push_back(earlier.id);
    }
    of.flights.push_back(flight);
    flights.push_back(std::move(flight));
  }
  for (const Flight& flight : flights)
    if (at(flight.exchange.bucket).postpones &&
        (flight.exchange.start == Start::bucket_stepped || flight.exchange.due == after_step()))
      usage_error("cannot run the exchange \"{}\": the update of its bucket is postponed",
                  print(flight.exchange));
  return flights;
}

void Machine::resume(Flight flight) {
  std::vector<Flight>& flights = at(flight.exchange.bucket).flights;
  flights.insert(std::ranges::upper_bound(flights, flight.id, {}, &Flight::id), std::move(flight));
}

// ---- parts of the points

void Machine::start_at(int bucket, Point point, Actions& actions) const {
  for (const Flight& flight : at(bucket).flights)
    if (taken(flight.exchange, flight.id.step) == moment(step_, point)) {
      actions.push_back({Action::Kind::snapshot, bucket, flight.id});
      actions.push_back({Action::Kind::start, bucket, flight.id});
    }
}

bool Machine::starts_at(const Bucket& of, Point point) const {
  return std::ranges::any_of(of.flights, [&](const Flight& flight) {
    return taken(flight.exchange, flight.id.step) == moment(step_, point);
  });
}

bool Machine::goes_on(const Bucket& of, const Flight& flight) {
  return std::ranges::any_of(of.flights, [&](const Flight& other) {
    return other.id.step == flight.id.step && other.id.index > flight.id.index &&
           continues(flight.exchange, other.exchange) &&
           merged(other.exchange, other.id.step) > merged(flight.exchange, flight.id.step);
  });
}

void Machine::merge_due(int bucket, Point point, Actions& actions) {
  Bucket& of = at(bucket);
  std::vector<FlightId> over;
  for (const Flight& flight : of.flights) {
    const Moment due = merged(flight.exchange, flight.id.step);
    if (due > moment(step_, point)) continue;
    if (due == moment(step_, point)) {
      if (goes_on(of, flight)) continue;
      actions.push_back({Action::Kind::wait, bucket, flight.id});
      actions.push_back({Action::Kind::merge, bucket, flight.id});
    } else {
      // It went on without a wait, in one that is merged by now.
      actions.push_back({Action::Kind::forget, bucket, flight.id});
    }
    over.push_back(flight.id);
  }
  std::erase_if(of.flights,
                [&](const Flight& flight) { return std::ranges::binary_search(over, flight.id); });
}

void Machine::pass_before_forward(int bucket, Actions& actions) {
  Bucket& of = at(bucket);
  if (of.forward) return;
  of.forward = true;
  merge_due(bucket, Point::before_forward, actions);
  if (of.postponed) actions.push_back({Action::Kind::update, bucket});
}

void Machine::pass_ready(int bucket, Actions& actions) {
  Bucket& of = at(bucket);
  if (of.ready) return;
  of.ready = true;
  actions.push_back({Action::Kind::complete, bucket});
  start_at(bucket, Point::gradient_ready, actions);
}

void Machine::pass_backward_done(Actions& actions) {
  if (backward_done_) return;
  backward_done_ = true;
  for (int b = 0; b < buckets(); ++b) pass_before_forward(b, actions);
  for (int b = 0; b < buckets(); ++b) pass_ready(b, actions);
  for (int b = 0; b < buckets(); ++b) start_at(b, Point::backward_done, actions);
}

void Machine::pass_before_step(int bucket, Actions& actions) {
  pass_before_forward(bucket, actions);
  Bucket& of = at(bucket);
  // What is due here may start only there.
  if (!of.ready || starts_at(of, Point::backward_done)) pass_backward_done(actions);
  if (of.before_step) return;
  of.before_step = true;
  merge_due(bucket, Point::before_step, actions);
  if (!of.postpones) actions.push_back({Action::Kind::update, bucket});
}

void Machine::pass_stepped(int bucket, Actions& actions) {
  if (at(bucket).stepped) return;
  pass_before_step(bucket, actions);
  at(bucket).stepped = true;
  merge_due(bucket, Point::stepped, actions);
  start_at(bucket, Point::stepped, actions);
}

// ---- points

Actions Machine::before_forward(int bucket) {
  Actions actions;
  pass_before_forward(bucket, actions);
  return actions;
}

Actions Machine::gradient_ready(int bucket) {
  Actions actions;
  pass_ready(bucket, actions);
  return actions;
}

Actions Machine::backward_done() {
  Actions actions;
  pass_backward_done(actions);
  return actions;
}

Actions Machine::before_step(int bucket) {
  Actions actions;
  pass_before_step(bucket, actions);
  return actions;
}

Actions Machine::stepped(int bucket) {
  Actions actions;
  Bucket& of = at(bucket);
  if (of.postponed)
    of.postponed = false;
  else
    pass_stepped(bucket, actions);
  return actions;
}

Actions Machine::step_done() {
  for (int b = 0; b < buckets(); ++b)
    if (at_[b].postponed)
      usage_error(
          "the update of bucket {} was postponed to wait_before_forward({}), which was not called",
          b, b);
  Actions actions;
  for (Bucket& each : at_) each.postponed = false;
  pass_backward_done(actions);
  for (int b = 0; b < buckets(); ++b) {
    pass_before_step(b, actions);
    if (!at_[b].postpones) pass_stepped(b, actions);
  }
  for (int b = 0; b < buckets(); ++b) start_at(b, Point::step_done, actions);
  for (Bucket& each : at_) each.postponed = each.postpones;
  return actions;
}

// ---- where things stand

bool Machine::must_wait(int bucket) const {
  const Bucket& of = at(bucket);
  return !of.forward && std::ranges::any_of(of.flights, [&](const Flight& flight) {
    return merged(flight.exchange, flight.id.step) == moment(step_, Point::before_forward);
  });
}

std::vector<FlightId> Machine::delayed() const {
  std::vector<FlightId> all;
  for (const Bucket& of : at_)
    for (const Flight& flight : of.flights)
      if (flight.id.step < step_) all.push_back(flight.id);
  std::ranges::sort(all);
  return all;
}

const Flight* Machine::scattered(int bucket) const {
  const Bucket& of = at(bucket);
  for (const Flight& flight : of.flights)
    if (flight.id.step == step_ && goes_on(of, flight)) return &flight;
  return nullptr;
}

void Machine::forget(FlightId flight) {
  for (Bucket& of : at_)
    std::erase_if(of.flights, [&](const Flight& each) { return each.id == flight; });
}

void Machine::reset(int buckets, bool postponed) {
  at_.assign(static_cast<std::size_t>(buckets), {});
  for (Bucket& of : at_) of.postponed = postponed;
}

}  // namespace riffle::schedule
