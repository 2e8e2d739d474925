#include "runtime/sense.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "measure/cluster_change.h"
#include "measure/network.h"
#include "riffle/error.h"
#include "runtime/state.h"

namespace riffle {

using runtime::ExchangeTime;
using runtime::Flight;
using runtime::FlightPtr;
using runtime::Sensing;

namespace runtime {
namespace {

constexpr int kLongestPatience = 64;

Cluster trial_cluster(int workers, int racks) {
  Cluster cluster;
  cluster.domains.push_back({"root", -1, {}});
  for (int r = 0; r < racks && racks > 1; ++r)
    cluster.domains.push_back({"rack", 0, {microseconds(100), {1e9}}});
  for (int i = 0; i < workers; ++i)
    cluster.workers.push_back(
        {.domain = racks > 1 ? 1 + i * racks / workers : 0, .link = {microseconds(10), {1e10}}});
  return cluster;
}

}  // namespace

bool follows_racks(const Strategy& strategy, int workers, const BucketPlan& buckets) {
  constexpr Step kSteps = 4;
  const World one(trial_cluster(workers, 1));
  const World two(trial_cluster(workers, 2));
  for (Step step = 0; step < kSteps; ++step)
    if (strategy.program(step, one, buckets) != strategy.program(step, two, buckets)) return true;
  return false;
}

int sensing_window(const Engine& engine, const Control& control, const Strategy& strategy,
                   const ModelSpec& model, const SessionOptions& options) {
  if (options.sense_window < 1)
    usage_error("sense_window: {}: must be 1 or more", options.sense_window);
  const bool wanted = options.sense && options.measure_network && !options.cluster &&
                      engine.size() > 2 && measure::by_host(engine).size() > 1 &&
                      follows_racks(strategy, engine.size(), one_bucket(modelled_trace(model)));
  return std::stoi(control.broadcast(std::to_string(wanted ? options.sense_window : 0)));
}

Sensing::Sensing(int steps, Step now, const Cluster& cluster)
    : window(steps), pace([&] {
        std::vector<double> factors;
        for (const WorkerSpec& each : cluster.workers) factors.push_back(each.slow);
        return factors;
      }()) {
  restart(now, {});
}

void Sensing::restart(Step now, Seconds waited_by_now) {
  first = since = began_at = now;
  began = Clock::now();
  waited = waited_by_now;
  std::erase_if(records, [&](const ExchangeRecord& each) { return each.step < now; });
}

}  // namespace runtime

void Session::State::sense() {
  if (!sensing) return;
  if (step == sensing->first + sensing->window + sensing->lateness) start_gathering();
  if (sensing->gathering && step == sensing->decide_at) decide();
  if (sensing->next && step == sensing->switch_at) change_world();
}

// What this rank has seen in the window that ends now.
std::vector<double> Session::State::own_numbers() {
  Sensing& at = *sensing;
  std::vector<double> numbers(at.numbers());
  const auto number = [&](Step of, int lane) -> double* {
    if (of < at.first || of >= at.first + at.window || lane >= Sensing::kLanes) return nullptr;
    return &numbers[2 + static_cast<std::size_t>((of - at.first) * Sensing::kLanes + lane)];
  };
  std::ranges::move(recorder.take_records(), std::back_inserter(at.records));
  for (const runtime::ExchangeRecord& each : at.records)
    if (double* sum = number(each.step, each.lane)) *sum += each.time.count();
  for (const auto& each : flights)
    for (const FlightPtr& flight : each)
      if (flight->stage != Flight::Stage::done)
        if (double* sum = number(flight->step, flight->exchange.lane)) *sum = 0;
  const Seconds waited = recorder.waited();
  const Seconds whole = Clock::now() - at.began;
  const auto steps = static_cast<double>(step - at.began_at);
  numbers[0] = (whole - (waited - at.waited)).count() / steps;
  numbers[1] = whole.count() / steps;
  return numbers;
}

void Session::State::start_gathering() {
  Sensing& at = *sensing;
  const std::vector<double> own = own_numbers();
  const std::size_t all = own.size() * static_cast<std::size_t>(control.ranks.size());
  auto flight = std::make_shared<Flight>();
  flight->exchange = {.bucket = -1, .group = control.ranks, .lane = lanes.own()};
  flight->step = step - 1;
  flight->parts = {{.dtype = DType::f64, .count = all}};
  flight->sent = Bytes{std::llround(
      cost->traffic(flight->exchange, {static_cast<std::int64_t>(all * sizeof(double))}).bytes)};
  flight->travelling = runtime::Flat(engine, flight->parts);
  flight->data = flight->travelling.parts();
  const auto begin = own.size() * static_cast<std::size_t>(control.ranks.index_of(engine.rank()));
  for (std::size_t i = 0; i < own.size(); ++i)
    runtime::set_value(flight->data[0], begin + i, own[i]);
  dispatcher.plan(flight);
  dispatcher.start(*flight);

  at.gathering = std::move(flight);
  at.gathered = at.first;
  at.decide_at = step + std::max(at.window / 4, 1);
  at.first += at.window;
  at.began = Clock::now();
  at.began_at = step;
  at.waited = recorder.waited();
  std::erase_if(at.records,
                [&](const runtime::ExchangeRecord& each) { return each.step < at.first; });
}

// The exchanges of the window that was gathered, with what each took.
std::vector<ExchangeTime> Session::State::gathered_times(const std::vector<double>& numbers) const {
  std::vector<ExchangeTime> times;
  const std::size_t each = sensing->numbers();
  for (int t = 0; t < sensing->window; ++t) {
    const Program program = strategy->program(sensing->gathered + t, agreed.world, layout.buckets);
    std::vector<std::pair<const void*, int>> seen;  // groups, and lanes
    for (const Exchange& exchange : program.exchanges) {
      const std::pair key{exchange.group.identity(), exchange.lane};
      if (exchange.group.size() == 1 || exchange.lane >= Sensing::kLanes ||
          std::ranges::count(seen, key) > 0)
        continue;
      seen.push_back(key);
      double least = 1e9;
      for (const Rank rank : exchange.group)
        least = std::min(least,
                         numbers[each * static_cast<std::size_t>(control.ranks.index_of(rank)) + 2 +
                                 static_cast<std::size_t>(t * Sensing::kLanes + exchange.lane)]);
      const bool inside = std::ranges::any_of(
          racks, [&](const Group& rack) { return std::ranges::includes(rack, exchange.group); });
      if (least > 0) times.push_back({exchange.group, !inside, Seconds(least)});
    }
  }
  return times;
}

void Session::State::decide() {
  Sensing& at = *sensing;
  const FlightPtr flight = std::exchange(at.gathering, nullptr);
  dispatcher.wait(*flight);
  if (at.gathered < at.since || at.next) return;
  std::vector<double> numbers(flight->data[0].count);
  for (std::size_t i = 0; i < numbers.size(); ++i)  // the mean over ranks, of which one wrote it
    numbers[i] = runtime::value_at(flight->data[0], i) * control.ranks.size();
  std::vector<Seconds> busy;
  std::vector<Seconds> whole;
  for (std::size_t i = 0; i < numbers.size(); i += at.numbers()) {
    busy.emplace_back(numbers[i]);
    whole.emplace_back(numbers[i + 1]);
  }
  const bool paces = at.pace.look(busy, whole);
  std::optional<runtime::Drift::Seen> drift;
  if (at.resting > 0)
    --at.resting;
  else
    drift = at.drift.look(gathered_times(numbers));
  if (drift || paces) measure_again(drift);
}

void Session::State::measure_again(const std::optional<runtime::Drift::Seen>& drift) {
  Sensing& at = *sensing;
  Cluster now = agreed.world.cluster;
  std::string seen;
  if (drift) {
    seen = fmt::format("exchanges {} {:.2g} times as long; ",
                       drift->ranks.empty()
                           ? std::string("between racks take")
                           : fmt::format("of ranks {} take", measure::ranges(drift->ranks)),
                       drift->factor);
    // Exchanges under way would be in the way.
    for (std::size_t b = 0; b < layout.buckets.size(); ++b) (void)needed(static_cast<int>(b));
    (void)delayed();
    now = measure::sensed_cluster(engine, control, racks, [&] {
      notices.check({.group = &control.ranks, .operation = "sense", .step = step - 1});
    });
    at.drift.forget();
    at.restart(step, recorder.waited());
  }
  for (std::size_t i = 0; i < now.workers.size(); ++i) now.workers[i].slow = at.pace.factors()[i];
  const std::vector<std::string> changed = measure::changes(agreed.world.cluster, now);
  if (changed.empty()) {
    at.resting = at.patience;
    at.patience = std::min(2 * at.patience, runtime::kLongestPatience);
    log(fmt::format("{}links and hosts are as before", seen));
    return;
  }
  at.patience = 1;
  at.why = seen + fmt::format("{}", fmt::join(changed, "; "));
  at.next = std::move(now);
  at.switch_at = quiet_step();
}

// The first step from now on at whose forward nothing of earlier programs is still to be merged. A
// strategy that always has something on its way changes at once: what is late is a correction,
// which adds up with any other.
Step Session::State::quiet_step() const {
  const Traits traits = strategy->traits_with(agreed.world, layout.buckets);
  const auto is_merged = [&](Step begun, Step by) {
    const Program program = strategy->program(begun, agreed.world, layout.buckets);
    return std::ranges::all_of(program.exchanges, [&](const Exchange& each) {
      return begun + each.due.steps < by ||
             (begun + each.due.steps == by && each.due.point == DuePoint::before_forward);
    });
  };
  for (Step candidate = step; candidate <= step + traits.staleness + 1; ++candidate) {
    bool quiet = true;
    for (Step begun = std::max<Step>(candidate - traits.staleness - 1, 0); begun < candidate;
         ++begun)
      quiet = quiet && is_merged(begun, candidate);
    if (quiet) return candidate;
  }
  return step;
}

void Session::State::change_world() {
  Sensing& at = *sensing;
  World world(std::move(*at.next), agreed.world.membership);
  at.next.reset();
  const runtime::Needs now = runtime::needs_of(*strategy.strategy, world, layout.buckets);
  if (now.gradients || now.outer || (now.state && !needs.state)) {
    log(fmt::format("{}; the groups stay: {} would exchange other things", at.why, strategy.spec));
    return;
  }
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) (void)needed(static_cast<int>(b));
  (void)delayed();
  dispatcher.forget_planned();
  const std::scoped_lock lock(mutex);
  for (auto& each : flights)
    std::erase_if(each, [&](const FlightPtr& flight) { return flight->step == step; });
  agreed.world = std::move(world);
  racks = agreed.world.racks();
  cost.emplace(agreed.world.cluster);
  prepare_step();
  for (runtime::Passed& each : passed) each.forward = true;
  at.drift.forget();
  at.restart(step, recorder.waited());
  const Traits traits = strategy->traits_with(agreed.world, layout.buckets);
  at.lateness = traits.staleness;
  log(fmt::format("{}; now {}, a period of {} steps, delay {}", at.why,
                  measure::summary(agreed.world.cluster), traits.period, traits.staleness));
}

void Session::State::log(std::string what) {
  if (engine.rank() == control.ranks.ranks().front()) {
    const std::string line = fmt::format("step {}: {}", step, what);
    if (options.log)
      options.log(line);
    else
      fmt::print(stderr, "riffle: {}\n", line);
  }
  sensed.push_back({step, std::move(what)});
}

}  // namespace riffle
