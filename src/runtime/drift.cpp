#include "runtime/drift.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace riffle::runtime {
namespace {

Seconds quantile(std::vector<Seconds> values, double share) {
  const auto place =
      static_cast<std::ptrdiff_t>(std::floor(share * static_cast<double>(values.size() - 1)));
  std::ranges::nth_element(values, values.begin() + place);
  return values[static_cast<std::size_t>(place)];
}

bool is_longer(Seconds a, Seconds b) {
  return a > Drift::kFactor * b && a - b > Drift::kNoise;
}

}  // namespace

std::optional<Drift::Seen> Drift::look(const std::vector<ExchangeTime>& window) {
  std::map<Kind, std::vector<Seconds>> times;
  for (const ExchangeTime& each : window) {
    if (each.crosses)
      times[{true, each.group.size(), kAll}].push_back(each.time);
    else
      for (const Rank rank : each.group)
        times[{false, each.group.size(), rank}].push_back(each.time);
  }
  Seen seen;
  std::set<Rank> ranks;
  for (const auto& [kind, values] : times) {
    const Seconds low = quantile(values, 0.25);
    const Seconds high = quantile(values, 0.75);
    const auto [found, is_new] = usual_.try_emplace(kind, Usual{.low = low, .high = high});
    if (is_new) continue;
    Usual& usual = found->second;
    usual.slower = is_longer(high, usual.high) ? usual.slower + 1 : 0;
    usual.faster = is_longer(usual.low, low) ? usual.faster + 1 : 0;
    if (std::max(usual.slower, usual.faster) < kWindows) continue;
    const double factor = usual.slower >= kWindows ? high / usual.high : low / usual.low;
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

}  // namespace riffle::runtime
