#include "schedule/drift.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace riffle::schedule {
namespace {

Seconds quantile(std::vector<Seconds> values, double share) {
  const auto place =
      static_cast<std::ptrdiff_t>(std::floor(share * static_cast<double>(values.size() - 1)));
  std::ranges::nth_element(values, values.begin() + place);
  return values[static_cast<std::size_t>(place)];
}

}  // namespace

std::optional<Drift::Seen> Drift::look(const std::vector<ExchangeTime>& window) {
  std::map<Kind, std::vector<Seconds>> times;
  const auto add = [&](const Kind& kind, const ExchangeTime& each) {
    if (const auto level = usual_[kind].phases.level(each.phase, each.time))
      times[kind].push_back(*level);
  };
  for (const ExchangeTime& each : window) {
    if (each.crosses)
      add({true, each.group.size(), kAll}, each);
    else
      for (const Rank rank : each.group) add({false, each.group.size(), rank}, each);
  }
  Seen seen;
  std::set<Rank> ranks;
  for (const auto& [kind, values] : times) {
    Quarters& usual = usual_[kind];
    const auto slower = usual.slower.look(quantile(values, 0.75));
    const auto faster = usual.faster.look(quantile(values, 0.25));
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
