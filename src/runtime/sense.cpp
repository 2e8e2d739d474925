#include "runtime/sense.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/median.h"
#include "model/cluster_change.h"
#include "runtime/engine_memory.h"

namespace riffle::runtime {
namespace {

using schedule::Drift;
using schedule::Told;
using schedule::Watch;

constexpr Link kFast{microseconds(1), {1e11}};
constexpr Link kSlow{Seconds(0.1), {1e6}};

Cluster trial_cluster(int workers, int racks, const Link& link) {
  Cluster cluster;
  cluster.domains.push_back({"root", -1, {}});
  for (int r = 0; r < racks && racks > 1; ++r) cluster.domains.push_back({"rack", 0, link});
  for (int i = 0; i < workers; ++i)
    cluster.workers.push_back({.domain = racks > 1 ? 1 + i * racks / workers : 0, .link = link});
  return cluster;
}

std::vector<double> paces_of(const Cluster& cluster) {
  std::vector<double> factors;
  for (const WorkerSpec& each : cluster.workers) factors.push_back(each.slow);
  return factors;
}

std::string print(const Drift::Seen& drift) {
  return fmt::format("exchanges {} {:.2g} times as long; ",
                     drift.ranks.empty()
                         ? std::string("between racks take")
                         : fmt::format("of ranks {} take", model::ranges(drift.ranks)),
                     drift.factor);
}

}  // namespace

bool follows_network(const Strategy& strategy, int workers, const Trace& trace) {
  constexpr Step kSteps = 4;
  std::vector<std::vector<Program>> all;
  for (const auto& [racks, link] : {std::pair{1, kFast}, {1, kSlow}, {2, kFast}}) {
    const World world(trial_cluster(workers, racks, link));
    const BucketPlan buckets = strategy.buckets(trace, CostModel(world.cluster), world);
    std::vector<Program>& programs = all.emplace_back();
    for (Step step = 0; step < kSteps; ++step)
      programs.push_back(strategy.program(step, world, buckets));
    if (schedule::needs_of(programs).serves) return false;  // no step in common at which to change
  }
  return all[0] != all[1] || all[0] != all[2];
}

int sensing_window(Exchanger& exchanger, const Strategy& strategy, const ModelSpec& model,
                   const SessionOptions& options) {
  const bool may_plan = !options.automatic || options.automatic->replan;
  const bool wanted = options.sense && options.measure_network && !options.cluster && may_plan &&
                      exchanger.can_sense() &&
                      (options.automatic ||
                       follows_network(strategy, exchanger.ranks().size(), modelled_trace(model)));
  return std::stoi(broadcast(exchanger, std::to_string(wanted ? options.sense_window : 0)));
}

Sensing::Sensing(Exchanger& exchanger, Recorder& recorder, Watched& watched, int most)
    : exchanger_(exchanger),
      recorder_(recorder),
      watched_(watched),
      most_(most),
      watch_(paces_of(watched.world().cluster)) {
  recorder_.keep_records();
  lateness_ = schedule::lateness_of(ran());
  begin_window(watched_.step());
  watched_.log("sensing: " + model::summary(watched_.world().cluster));
}

schedule::Ran Sensing::ran() const {
  return {watched_.strategy(), watched_.world(), watched_.buckets()};
}

void Sensing::begin_window(Step first) {
  window_ = {
      .first = first,
      .steps = step_time_ > Seconds{} ? Watch::steps_for(step_time_, most_) : Watch::kLeastSteps,
      .lateness = lateness_};
  began_at_ = watched_.step();
  began_ = Clock::now();
  waited_ = recorder_.waited();
  std::erase_if(records_, [&](const ExchangeRecord& each) { return each.step < window_.first; });
}

void Sensing::restart() {
  watch_.restart();
  since_ = watched_.step();
  lateness_ = schedule::lateness_of(ran());
  begin_window(since_);
}

void Sensing::look() {
  if (measuring_) return measure();
  // In this order: a window of one step is judged when the next is told.
  if (gathering_ && watched_.step() == told_.judge_at()) judge();
  if (!measuring_ && watched_.step() == window_.tell_at()) tell();
}

// ---- what is told

// What this rank has seen in the window that ends now.
std::vector<double> Sensing::own_numbers() {
  std::vector<double> told(numbers(window_));
  std::ranges::move(recorder_.take_records(), std::back_inserter(records_));
  for (const ExchangeRecord& each : records_) {
    if (each.step < window_.first || each.step >= window_.first + window_.steps ||
        each.lane >= Watch::kLanes || watched_.is_under_way(each.step, each.lane))
      continue;
    told[2 + static_cast<std::size_t>((each.step - window_.first) * Watch::kLanes + each.lane)] +=
        each.time.count();
  }
  const Seconds waited = recorder_.waited();
  const Seconds whole = Clock::now() - began_;
  const auto steps = static_cast<double>(watched_.step() - began_at_);
  told[0] = (whole - (waited - waited_)).count() / steps;
  told[1] = whole.count() / steps;
  return told;
}

void Sensing::tell() {
  const std::vector<double> own = own_numbers();
  const Group& ranks = exchanger_.ranks();
  auto flight = std::make_shared<Flight>();
  flight->exchange = {.bucket = -1, .group = ranks, .lane = exchanger_.spare_lane()};
  flight->id = {watched_.step() - 1, -1};
  flight->parts = {
      {.dtype = DType::f64, .count = own.size() * static_cast<std::size_t>(ranks.size())}};
  flight->travelling = Flat(exchanger_.memory(), flight->parts);
  flight->data = flight->travelling.parts();
  const CostModel cost(watched_.world().cluster);
  flight->sent = Bytes{std::llround(
      cost.traffic(flight->exchange, {static_cast<std::int64_t>(bytes_of(flight->data[0]))})
          .bytes)};
  const auto begin = own.size() * static_cast<std::size_t>(ranks.index_of(exchanger_.rank()));
  for (std::size_t i = 0; i < own.size(); ++i) set_value(flight->data[0], begin + i, own[i]);
  exchanger_.plan(flight);
  exchanger_.start(*flight);

  gathering_ = std::move(flight);
  told_ = window_;
  begin_window(window_.first + window_.steps);
}

std::vector<Told> Sensing::gathered() {
  const FlightPtr flight = std::exchange(gathering_, nullptr);
  exchanger_.wait(*flight);
  const int ranks = exchanger_.ranks().size();
  // The mean over ranks, of which one wrote it.
  const auto number = [&](std::size_t i) { return Seconds(value_at(flight->data[0], i) * ranks); };
  std::vector<Told> all;
  for (std::size_t i = 0; i < flight->data[0].count; i += numbers(told_)) {
    Told& each = all.emplace_back(number(i), number(i + 1));
    for (std::size_t n = 2; n < numbers(told_); ++n) each.exchanges.push_back(number(i + n));
  }
  return all;
}

// ---- what is decided

void Sensing::judge() {
  const std::vector<Told> told = gathered();
  if (told_.first < since_ || watched_.is_changing()) return;
  std::vector<Seconds> steps;
  for (const Told& each : told) steps.push_back(each.whole);
  step_time_ = median(steps);
  const auto alarm = watch_.look(told_, told, ran());
  if (!alarm) return;
  tempo_ = alarm->tempo.value_or(1);
  seen_ = alarm->tempo ? fmt::format("computing takes {:.2g} times as long; ", tempo_) : "";
  if (alarm->network) return begin_measuring(*alarm->network);
  plan_for(watched_.world().cluster, tempo_);
}

void Sensing::begin_measuring(const Drift::Seen& drift) {
  seen_ += print(drift);
  const Seconds slice = schedule::slice_time(step_time_);
  const measure::CheckOptions options{
      .uplinks = drift.crosses, .slice = slice, .together = schedule::holds_both(slice)};
  measuring_ = std::make_unique<Slices>([this, options](const Slices::Rest& rest) {
    measure::CheckOptions with = options;
    with.between = rest;
    found_ = exchanger_.check(watched_.world().cluster, with,
                              [this] { exchanger_.look_around("sense", watched_.step() - 1); });
  });
  measure();
}

void Sensing::measure() {
  // Exchanges under way would be in the way.
  watched_.come_to_rest();
  if (!measuring_->run()) return;
  measuring_.reset();
  restart();
  plan_for(std::move(*std::exchange(found_, std::nullopt)), tempo_);
}

void Sensing::plan_for(Cluster now, double tempo) {
  for (std::size_t i = 0; i < now.workers.size(); ++i) now.workers[i].slow = watch_.slow()[i];
  const std::vector<std::string> changed = model::changes(watched_.world().cluster, now);
  watch_.measured(!changed.empty());
  if (changed.empty() && tempo == 1) {
    watched_.log(seen_ + "links and hosts are as before");
    return;
  }
  watched_.plan_again(std::move(now), tempo, seen_ + fmt::format("{}", fmt::join(changed, "; ")));
}

}  // namespace riffle::runtime
