#include "runtime/steps.h"

#include <algorithm>
#include <cmath>

#include "riffle/error.h"

namespace riffle::runtime {

using schedule::Action;
using schedule::Actions;

Steps::Steps(Exchanger& exchanger, Values& values, std::size_t parameters, int profile_steps)
    : exchanger_(exchanger),
      values_(values),
      profile_(parameters, profile_steps),
      machine_(exchanger.rank()),
      arrivals_(parameters) {}

void Steps::begin(Step step, const Program& program, const CostModel& cost, bool forward) {
  const BucketPlan& buckets = values_.layout().buckets;
  const std::scoped_lock lock(mutex_);
  arrivals_.begin(buckets);
  std::erase_if(flights_, [&](const auto& each) { return each.first.step == step; });
  for (schedule::Flight& planned :
       machine_.begin(step, program, static_cast<int>(buckets.size()), forward)) {
    const auto flight = std::make_shared<Flight>(std::move(planned));
    const Bytes size =
        exchanged_bytes(buckets[flight->exchange.bucket], flight->exchange, DType::f32);
    flight->sent = Bytes{std::llround(cost.traffic(flight->exchange, size).bytes)};
    flight->exchange.algorithm = exchanger_.algorithm(cost, flight->exchange, size);
    for (const schedule::FlightId& id : flight->after) flight->awaited.push_back(flights_.at(id));
    flights_.emplace(flight->id, flight);
    exchanger_.plan(flight);
  }
}

void Steps::resume(FlightPtr flight) {
  machine_.resume(*flight);
  flights_.emplace(flight->id, std::move(flight));
}

// ---- actions

void Steps::carry_out(const Action& action) {
  if (action.kind == Action::Kind::complete)
    return values_.complete(action.bucket, arrivals_.used());
  const auto found = flights_.find(action.flight);
  RIFFLE_CHECK(found != flights_.end());
  Flight& flight = *found->second;
  switch (action.kind) {
    case Action::Kind::snapshot:
      return values_.snapshot(flight);
    case Action::Kind::start:
      return exchanger_.start(flight);
    case Action::Kind::merge:
      values_.merge(flight, flight.exchange.group.index_of(exchanger_.rank()));
      break;
    case Action::Kind::forget:
      values_.give_back(flight);
      break;
    case Action::Kind::wait:
    case Action::Kind::update:
    case Action::Kind::complete:
      break;
  }
  flights_.erase(found);
}

template <typename Point>
void Steps::pass(const Point& point) {
  Actions actions;
  {
    const std::scoped_lock lock(mutex_);
    actions = point();
  }
  for (const Action& action : actions) {
    if (action.kind == Action::Kind::update) continue;  // the adapter asks whether it may
    if (action.kind == Action::Kind::wait || action.kind == Action::Kind::forget) {
      FlightPtr flight;
      {
        const std::scoped_lock lock(mutex_);
        flight = flights_.at(action.flight);
      }
      exchanger_.wait(*flight);
    }
    if (action.kind == Action::Kind::wait) continue;
    const std::scoped_lock lock(mutex_);
    carry_out(action);
  }
}

// ---- points

bool Steps::before_forward(int bucket) {
  profile_.stop();
  pass([&] { return machine_.before_forward(bucket); });
  if (machine_.is_postponed(bucket)) return true;  // its update comes first
  profile_.go_on();
  return false;
}

std::optional<int> Steps::mark_gradient_ready(int parameter, std::string_view name) {
  const std::scoped_lock lock(mutex_);
  arrivals_.use(parameter);
  if (!sync_) return std::nullopt;
  profile_.gradient(parameter);
  profile_.stop();
  const std::optional<int> completed = arrive(parameter, name);
  profile_.go_on();
  return completed;
}

std::optional<int> Steps::arrive(int parameter, std::string_view name) {
  const int bucket = values_.layout().bucket_of.at(parameter);
  if (arrivals_.has_arrived(parameter) || machine_.is_ready(bucket))
    usage_error(
        "the gradient of {} came a second time in step {}: accumulate with no_sync in all but the "
        "last backward, or call step after each",
        name, machine_.step());
  if (machine_.must_wait(bucket))
    usage_error("wait_before_forward({}) was not called before the forward of step {} used {}",
                bucket, machine_.step(), name);
  if (!arrivals_.arrive(parameter, bucket)) return std::nullopt;
  for (const Action& action : machine_.gradient_ready(bucket)) carry_out(action);
  return bucket;
}

void Steps::backward_done() {
  profile_.backward_done();
  pass([&] { return machine_.backward_done(); });
}

bool Steps::before_step(int bucket) {
  profile_.stop();  // until the bucket is updated
  pass([&] { return machine_.before_step(bucket); });
  return !machine_.postpones(bucket);
}

void Steps::stepped(int bucket) {
  pass([&] { return machine_.stepped(bucket); });
  profile_.go_on();
}

void Steps::step_done() {
  pass([&] { return machine_.step_done(); });
  profile_.end_step();
  const std::scoped_lock lock(mutex_);
  arrivals_.end();
}

// ---- what the update needs to know

bool Steps::used(int parameter) const {
  const int bucket = values_.layout().bucket_of.at(parameter);
  const auto& own = machine_.is_postponed(bucket) ? arrivals_.used_before() : arrivals_.used();
  // Who used it itself need not look what the others did.
  if (own[parameter] || values_.gradient(parameter).data == nullptr) return own[parameter] != 0;
  return values_.used(parameter);
}

void Steps::for_each_gradient(const std::function<void(TensorView, bool)>& visit) {
  for (int b = 0; b < machine_.buckets(); ++b) {
    (void)before_step(b);
    const schedule::Flight* scattered = machine_.scattered(b);
    if (scattered != nullptr) exchanger_.wait(*flights_.at(scattered->id));
    for (const GradientPart& part : values_.gradients_of(b)) {
      if (scattered == nullptr) {
        visit(part.values, false);
        continue;
      }
      // Slices are of the part with its flags; only the own one is valid yet, and what is left over
      // where they do not divide it evenly, on every member.
      const int members = scattered->exchange.group.size();
      const auto slice = [&](int member) {
        return exchanger_.slice(part.whole, part.values.dtype, members, member);
      };
      const auto visit_from = [&](std::size_t begin, std::size_t end, bool is_own_slice) {
        end = std::min(end, part.values.count);
        if (end > begin) visit(part_of(part.values, begin, end - begin), is_own_slice);
      };
      const Slice own = slice(scattered->exchange.group.index_of(exchanger_.rank()));
      const Slice last = slice(members - 1);
      visit_from(own.begin, own.begin + own.count, true);
      visit_from(last.begin + last.count, part.whole, false);
    }
  }
}

// ---- between steps

void Steps::settle() {
  for (int b = 0; b < machine_.buckets(); ++b)
    if (before_forward(b))
      usage_error(
          "the update of bucket {} is postponed: make it where wait_before_forward() says so, "
          "first",
          b);
}

std::vector<FlightPtr> Steps::delayed() {
  std::vector<FlightPtr> all;
  {
    const std::scoped_lock lock(mutex_);
    for (const schedule::FlightId& id : machine_.delayed()) all.push_back(flights_.at(id));
  }
  for (const FlightPtr& flight : all) exchanger_.wait(*flight);
  return all;
}

void Steps::drop(const Flight& flight) {
  const std::scoped_lock lock(mutex_);
  machine_.forget(flight.id);
  flights_.erase(flight.id);
}

void Steps::merge_delayed() {
  for (const FlightPtr& flight : delayed()) {
    const std::scoped_lock lock(mutex_);
    values_.merge(*flight, flight->exchange.group.index_of(exchanger_.rank()));
    machine_.forget(flight->id);
    flights_.erase(flight->id);
  }
}

bool Steps::is_under_way(Step step, int lane) const {
  const std::scoped_lock lock(mutex_);
  return std::ranges::any_of(flights_, [&](const auto& each) {
    return each.first.step == step && each.second->exchange.lane == lane &&
           each.second->stage != Flight::Stage::done;
  });
}

void Steps::reset(bool postponed) {
  const std::scoped_lock lock(mutex_);
  flights_.clear();
  machine_.reset(static_cast<int>(values_.layout().buckets.size()), postponed);
}

}  // namespace riffle::runtime
