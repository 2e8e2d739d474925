#include "runtime/sense.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "measure/cluster_change.h"
#include "riffle/error.h"
#include "runtime/engine_memory.h"

namespace riffle::runtime {
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

std::vector<double> paces_of(const Cluster& cluster) {
  std::vector<double> factors;
  for (const WorkerSpec& each : cluster.workers) factors.push_back(each.slow);
  return factors;
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

int sensing_window(Exchanger& exchanger, const Strategy& strategy, const ModelSpec& model,
                   const SessionOptions& options) {
  if (options.sense_window < 1)
    usage_error("sense_window: {}: must be 1 or more", options.sense_window);
  const bool wanted =
      options.sense && options.measure_network && !options.cluster &&
      exchanger.surroundings().can_sense() &&
      follows_racks(strategy, exchanger.ranks().size(), one_bucket(modelled_trace(model)));
  return std::stoi(broadcast(exchanger, std::to_string(wanted ? options.sense_window : 0)));
}

Sensing::Sensing(Exchanger& exchanger, Recorder& recorder, Watched& watched, int window)
    : exchanger_(exchanger),
      recorder_(recorder),
      watched_(watched),
      window_(window),
      pace_(paces_of(watched.world().cluster)) {
  recorder_.keep_records();
  begin_window();
  watched_.log("sensing: " + measure::summary(watched_.world().cluster));
}

void Sensing::begin_window() {
  lateness_ = watched_.strategy().traits_with(watched_.world(), watched_.buckets()).staleness;
  first_ = since_ = began_at_ = watched_.step();
  began_ = Clock::now();
  waited_ = recorder_.waited();
  std::erase_if(records_, [&](const ExchangeRecord& each) { return each.step < first_; });
}

void Sensing::restart() {
  drift_.forget();
  begin_window();
}

void Sensing::look() {
  const Step now = watched_.step();
  if (now == first_ + window_ + lateness_) start_gathering();
  if (gathering_ && now == decide_at_) decide();
  if (next_ && now == switch_at_) change_world();
}

// What this rank has seen in the window that ends now.
std::vector<double> Sensing::own_numbers() {
  std::vector<double> told(numbers());
  std::ranges::move(recorder_.take_records(), std::back_inserter(records_));
  for (const ExchangeRecord& each : records_) {
    if (each.step < first_ || each.step >= first_ + window_ || each.lane >= kLanes) continue;
    if (watched_.is_under_way(each.step, each.lane)) continue;
    told[2 + static_cast<std::size_t>((each.step - first_) * kLanes + each.lane)] +=
        each.time.count();
  }
  const Seconds waited = recorder_.waited();
  const Seconds whole = Clock::now() - began_;
  const auto steps = static_cast<double>(watched_.step() - began_at_);
  told[0] = (whole - (waited - waited_)).count() / steps;
  told[1] = whole.count() / steps;
  return told;
}

void Sensing::start_gathering() {
  const std::vector<double> own = own_numbers();
  const Group& ranks = exchanger_.ranks();
  auto flight = std::make_shared<Flight>();
  flight->exchange = {.bucket = -1, .group = ranks, .lane = exchanger_.surroundings().spare_lane()};
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
  gathered_ = first_;
  decide_at_ = watched_.step() + std::max(window_ / 4, 1);
  first_ += window_;
  began_ = Clock::now();
  began_at_ = watched_.step();
  waited_ = recorder_.waited();
  std::erase_if(records_, [&](const ExchangeRecord& each) { return each.step < first_; });
}

// The exchanges of the window that was gathered, with what each took.
std::vector<ExchangeTime> Sensing::times_of(const std::vector<double>& told) const {
  std::vector<ExchangeTime> times;
  const Partition racks = watched_.world().racks();
  for (int t = 0; t < window_; ++t) {
    const Program program =
        watched_.strategy().program(gathered_ + t, watched_.world(), watched_.buckets());
    std::vector<std::pair<const void*, int>> seen;  // groups, and lanes
    for (const Exchange& exchange : program.exchanges) {
      const std::pair key{exchange.group.identity(), exchange.lane};
      if (exchange.group.size() == 1 || exchange.lane >= kLanes ||
          std::ranges::count(seen, key) > 0)
        continue;
      seen.push_back(key);
      double least = 1e9;
      for (const Rank rank : exchange.group)
        least = std::min(
            least, told[numbers() * static_cast<std::size_t>(exchanger_.ranks().index_of(rank)) +
                        2 + static_cast<std::size_t>(t * kLanes + exchange.lane)]);
      const bool inside = std::ranges::any_of(
          racks, [&](const Group& rack) { return std::ranges::includes(rack, exchange.group); });
      if (least > 0) times.push_back({exchange.group, !inside, Seconds(least)});
    }
  }
  return times;
}

void Sensing::decide() {
  const FlightPtr flight = std::exchange(gathering_, nullptr);
  exchanger_.wait(*flight);
  if (gathered_ < since_ || next_) return;
  std::vector<double> told(flight->data[0].count);
  for (std::size_t i = 0; i < told.size(); ++i)  // the mean over ranks, of which one wrote it
    told[i] = value_at(flight->data[0], i) * exchanger_.ranks().size();
  std::vector<Seconds> busy;
  std::vector<Seconds> whole;
  for (std::size_t i = 0; i < told.size(); i += numbers()) {
    busy.emplace_back(told[i]);
    whole.emplace_back(told[i + 1]);
  }
  const bool paces = pace_.look(busy, whole);
  std::optional<Drift::Seen> drift;
  if (resting_ > 0)
    --resting_;
  else
    drift = drift_.look(times_of(told));
  if (drift || paces) measure_again(drift);
}

void Sensing::measure_again(const std::optional<Drift::Seen>& drift) {
  const Cluster& before = watched_.world().cluster;
  Cluster now = before;
  std::string seen;
  if (drift) {
    seen = fmt::format("exchanges {} {:.2g} times as long; ",
                       drift->ranks.empty()
                           ? std::string("between racks take")
                           : fmt::format("of ranks {} take", measure::ranges(drift->ranks)),
                       drift->factor);
    // Exchanges under way would be in the way.
    watched_.come_to_rest();
    const Step last = watched_.step() - 1;
    now = exchanger_.surroundings().sense(watched_.world().racks(),
                                          [&] { exchanger_.look_around("sense", last); });
    restart();
  }
  for (std::size_t i = 0; i < now.workers.size(); ++i) now.workers[i].slow = pace_.factors()[i];
  const std::vector<std::string> changed = measure::changes(before, now);
  if (changed.empty()) {
    resting_ = patience_;
    patience_ = std::min(2 * patience_, kLongestPatience);
    watched_.log(fmt::format("{}links and hosts are as before", seen));
    return;
  }
  patience_ = 1;
  why_ = seen + fmt::format("{}", fmt::join(changed, "; "));
  next_ = std::move(now);
  // A strategy that always has something on its way changes at once: what is late is a correction,
  // which adds up with any other.
  switch_at_ = schedule::quiet_step(watched_.strategy(), watched_.world(), watched_.buckets(),
                                    watched_.step())
                   .value_or(watched_.step());
}

void Sensing::change_world() {
  Cluster cluster = std::move(*next_);
  next_.reset();
  if (!watched_.change_world(std::move(cluster))) {
    watched_.log(why_ + "; the groups stay: the strategy would exchange other things");
    return;
  }
  restart();
  const Traits traits = watched_.strategy().traits_with(watched_.world(), watched_.buckets());
  watched_.log(fmt::format("{}; now {}, a period of {} steps, delay {}", why_,
                           measure::summary(watched_.world().cluster), traits.period,
                           traits.staleness));
}

}  // namespace riffle::runtime
