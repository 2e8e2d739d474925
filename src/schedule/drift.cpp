#include "schedule/drift.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace riffle::schedule {
namespace {

Seconds value_at(std::vector<Seconds> values, double place) {
  const auto at = static_cast<std::ptrdiff_t>(place);
  std::ranges::nth_element(values, values.begin() + at);
  return values[static_cast<std::size_t>(at)];
}

// Of two values the slower one is the slower quarter, and the faster one the faster quarter.
Seconds slower_quarter(const std::vector<Seconds>& values) {
  return value_at(values, std::ceil(0.75 * static_cast<double>(values.size() - 1)));
}

Seconds faster_quarter(const std::vector<Seconds>& values) {
  return value_at(values, std::floor(0.25 * static_cast<double>(values.size() - 1)));
}

}  // namespace

std::optional<Drift::Seen> Drift::look(const std::vector<ExchangeTime>& window) {
  std::map<Kind, std::vector<Seconds>> times;
  const auto add = [&](Kind kind, const ExchangeTime& each) {
    if (const auto level = usual_[kind].phases.level(each.phase, each.time))
      times[kind].push_back(*level);
    if (each.phase == Phases::kNone) return;
    kind.phase = each.phase;
    times[kind].push_back(each.time);
  };
  for (const ExchangeTime& each : window) {
    if (each.crosses)
      add({true, each.group.size(), kAll, Phases::kNone}, each);
    else
      for (const Rank rank : each.group) add({false, each.group.size(), rank, Phases::kNone}, each);
  }
  Seen seen;
  std::set<Rank> ranks;
  for (const auto& [kind, values] : times) {
    Quarters& usual = usual_[kind];
    const auto slower = usual.slower.look(slower_quarter(values));
    const auto faster = usual.faster.look(faster_quarter(values));
    if (!slower && !faster) continue;
    const double factor = slower ? *slower : *faster;
    if (std::abs(std::log(factor)) > std::abs(std::log(seen.factor))) seen.factor = factor;
    if (kind.rank == kAll)
      seen.crosses = true;
    else
      ranks.insert(kind.rank);
  }
  seen.ranks = Group(std::vector<Rank>(ranks.begin(), ranks.end()));
  if (seen.ranks.empty() && !seen.crosses) return std::nullopt;
  return seen;
}

void Drift::forget() {
  usual_.clear();
}

}  // namespace riffle::schedule
