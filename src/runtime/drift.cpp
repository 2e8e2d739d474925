#include "runtime/drift.h"

#include <algorithm>
#include <cmath>

namespace riffle::runtime {
namespace {

double quantile(std::vector<double> values, double share) {
  const auto place =
      static_cast<std::ptrdiff_t>(std::floor(share * static_cast<double>(values.size() - 1)));
  std::ranges::nth_element(values, values.begin() + place);
  return values[static_cast<std::size_t>(place)];
}

}  // namespace

std::optional<Drift::Seen> Drift::look(const std::vector<ExchangeTime>& window) {
  std::map<Kind, std::vector<double>> fresh;
  std::map<Rank, std::vector<double>> factors;
  for (const ExchangeTime& each : window) {
    const Kind kind{each.crosses, each.group.size()};
    const auto usual = usual_.find(kind);
    if (usual == usual_.end()) {
      fresh[kind].push_back(each.time.count());
      continue;
    }
    const bool differs = std::chrono::abs(each.time - usual->second) > kNoise;
    const double factor = differs ? each.time / usual->second : 1;
    if (each.crosses)
      factors[kAll].push_back(factor);
    else
      for (const Rank rank : each.group) factors[rank].push_back(factor);
  }
  for (auto& [kind, times] : fresh) usual_[kind] = Seconds(quantile(std::move(times), 0.5));

  Seen seen;
  std::vector<Rank> ranks;
  for (const auto& [rank, values] : factors) {
    Count& count = counts_[rank];
    const double high = quantile(values, 0.75);
    const double low = quantile(values, 0.25);
    count.slower = high > kFactor ? count.slower + 1 : 0;
    count.faster = low < 1 / kFactor ? count.faster + 1 : 0;
    count.factor = count.slower > 0 ? high : low;
    if (std::max(count.slower, count.faster) < kWindows) continue;
    if (rank == kAll)
      seen.crosses = true;
    else
      ranks.push_back(rank);
    if (std::abs(std::log(count.factor)) > std::abs(std::log(seen.factor)))
      seen.factor = count.factor;
  }
  seen.ranks = Group(std::move(ranks));
  if (seen.ranks.empty() && !seen.crosses) return std::nullopt;
  return seen;
}

void Drift::forget() {
  usual_.clear();
  counts_.clear();
}

}  // namespace riffle::runtime
