#include "schedule/watch.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/median.h"

namespace riffle::schedule {

int Watch::steps_for(Seconds step, int most) {
  const double steps = std::ceil(kWindowTime / std::max(step, microseconds(1)));
  return static_cast<int>(std::min(std::max(steps, 1.0 * kLeastSteps), 1.0 * most));
}

std::optional<Watch::Alarm> Watch::look(const Window& window, const std::vector<Told>& told,
                                        const Ran& ran) {
  std::vector<Seconds> busy;
  std::vector<Seconds> whole;
  for (const Told& each : told) {
    busy.push_back(each.busy);
    whole.push_back(each.whole);
  }
  Alarm alarm;
  alarm.hosts = pace_.look(busy, whole);
  alarm.tempo = look_at_tempo(busy);
  if (resting_ > 0)
    --resting_;
  else
    alarm.network = drift_.look(times_of(window, told, ran));
  if (!alarm.network && !alarm.hosts && !alarm.tempo) return std::nullopt;
  return alarm;
}

std::optional<double> Watch::look_at_tempo(const std::vector<Seconds>& busy) {
  const Seconds usual = median(busy);
  const auto longer = longer_.look(usual);
  const auto shorter = shorter_.look(usual);
  if (!longer && !shorter) return std::nullopt;
  longer_ = Usual(Usual::Way::up);
  shorter_ = Usual(Usual::Way::down);
  return longer ? longer : shorter;
}

void Watch::restart() {
  drift_.forget();
}

void Watch::measured(bool changed) {
  if (changed) {
    patience_ = 1;
    return;
  }
  resting_ = patience_;
  patience_ = std::min(2 * patience_, kLongestPatience);
}

int lateness_of(const Ran& ran) {
  constexpr int kRandom = 8;  // programs of a schedule without a period
  const Traits traits = ran.strategy.traits_with(ran.world, ran.buckets);
  int steps = traits.staleness;
  for (Step t = 0; t < (traits.period > 0 ? traits.period : kRandom * traits.round); ++t)
    for (const Exchange& exchange : ran.strategy.program(t, ran.world, ran.buckets).exchanges)
      steps = std::max(steps, exchange.due.steps);
  return steps;
}

std::vector<ExchangeTime> times_of(const Window& window, const std::vector<Told>& told,
                                   const Ran& ran) {
  std::vector<ExchangeTime> times;
  const Partition racks = ran.world.racks();
  const int period = ran.strategy.traits_with(ran.world, ran.buckets).period;
  const bool has_phases = period > 1 && period <= Watch::kLongestPeriod;
  for (int t = 0; t < window.steps; ++t) {
    const Program program = ran.strategy.program(window.first + t, ran.world, ran.buckets);
    std::set<std::pair<const void*, int>> seen;  // groups, and lanes
    for (const Exchange& exchange : program.exchanges) {
      if (exchange.group.size() == 1 || exchange.lane >= Watch::kLanes ||
          !seen.emplace(exchange.group.identity(), exchange.lane).second)
        continue;
      const auto place = static_cast<std::size_t>(t * Watch::kLanes + exchange.lane);
      Seconds least{1e9};
      for (const Rank rank : exchange.group)
        least = std::min(
            least,
            told[static_cast<std::size_t>(ran.world.ranks().index_of(rank))].exchanges[place]);
      const bool inside = std::ranges::any_of(
          racks, [&](const Group& rack) { return std::ranges::includes(rack, exchange.group); });
      const auto phase = static_cast<int>((window.first + t) % std::max(period, 1));
      if (least > Seconds{})
        times.push_back({exchange.group, !inside, least, has_phases ? phase : Phases::kNone});
    }
  }
  return times;
}

Seconds slice_time(Seconds step) {
  return std::clamp(step, Seconds(0.15), Seconds(0.8));
}

bool holds_both(Seconds slice) {
  return slice >= Seconds(0.4);
}

int slices_of(const Cluster& known, Seconds slice) {
  const int domains = static_cast<int>(known.domains.size()) - 1;
  const int uplinks = domains == 2 ? 1 : domains;  // two parts have one path between them
  return holds_both(slice) ? uplinks : 1 + 2 * uplinks;
}

}  // namespace riffle::schedule
