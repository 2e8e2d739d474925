#include "measure/levels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/median.h"
#include "measure/linkage.h"

namespace riffle::measure {
namespace {

// Latencies across are longer than inside by this share, and by more than noise.
constexpr double kLonger = 1.2;
// Pairs inside carry what their own links do, give or take this factor; pairs across carry less by
// this one.
constexpr double kSame = 1.15;
constexpr double kLess = 1.3;
// More pairs than that tell no more of an uplink.
constexpr std::size_t kMostPairs = 32;
// A host with so little of the usual rate tells nothing of the links beyond its own.
constexpr double kNarrow = 0.5;

double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(
      std::lround(share * static_cast<double>(values.size() - 1)))];
}

template <typename Use>
void for_pairs(const std::vector<int>& hosts, const Use& use) {
  for (std::size_t a = 0; a < hosts.size(); ++a)
    for (std::size_t b = a + 1; b < hosts.size(); ++b) use(hosts[a], hosts[b]);
}

std::vector<double> inside(const PairTable<double>& table, const Sets& sets) {
  std::vector<double> values;
  for (const auto& set : sets)
    for_pairs(set, [&](int a, int b) {
      if (table.at(a, b)) values.push_back(*table.at(a, b));
    });
  return values;
}

std::vector<double> across(const PairTable<double>& table, const std::vector<int>& one,
                           const std::vector<int>& other) {
  std::vector<double> values;
  for (const int a : one)
    for (const int b : other)
      if (table.at(a, b)) values.push_back(*table.at(a, b));
  return values;
}

template <typename Holds>
bool all_pairs(const Sets& sets, const Holds& holds) {
  for (std::size_t a = 0; a < sets.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (!holds(sets[a], sets[b])) return false;
  return true;
}

// Latencies as they would be if all hosts had usual links of their own: what a host's nearest
// neighbour has more than is usual is its own.
PairTable<double> without_own_links(const PairTable<Seconds>& latency) {
  const int n = latency.size();
  std::vector<double> nearest;
  for (int a = 0; a < n; ++a) {
    double least = std::numeric_limits<double>::max();
    for (int b = 0; b < n; ++b)
      if (a != b && latency.at(a, b)) least = std::min(least, latency.at(a, b)->count());
    nearest.push_back(least);
  }
  const double usual = median(nearest);
  const auto own = [&](int host) { return std::max(2 * nearest[host] - usual, 0.0); };
  PairTable<double> rest(n);
  for (int a = 0; a < n; ++a)
    for (int b = 0; b < n; ++b)
      if (a != b && latency.at(a, b))
        rest.at(a, b) = usual + std::max(latency.at(a, b)->count() - (own(a) + own(b)) / 2, 0.0);
  return rest;
}

std::vector<double> best_rates(const PairTable<Bandwidth>& rate) {
  std::vector<double> best;
  for (const HostRate& each : host_rates(rate)) best.push_back(each.best().bytes_per_second);
  return best;
}

// How many times more the hosts' own links would have carried, as a logarithm; the mean of both
// ways.
PairTable<double> lacks(const PairTable<Bandwidth>& rate, const std::vector<double>& best) {
  constexpr double most = 16;
  PairTable<double> result(rate.size());
  for (int a = 0; a < rate.size(); ++a)
    for (int b = 0; b < rate.size(); ++b) {
      double sum = 0;
      int count = 0;
      for (const auto& way : {rate.at(a, b), rate.at(b, a)})
        if (way) {
          const double own = std::min(best[a], best[b]);
          sum += std::log(std::clamp(own / std::max(way->bytes_per_second, 1.0), 1.0, most));
          ++count;
        }
      if (count > 0) result.at(a, b) = sum / count;
    }
  return result;
}

// The hosts of some parts in turns, so that the first few are spread over all of them.
std::vector<int> in_turns(const std::vector<std::vector<int>>& lists) {
  std::vector<int> hosts;
  bool any = true;
  for (std::size_t i = 0; any; ++i) {
    any = false;
    for (const auto& list : lists)
      if (i < list.size()) {
        hosts.push_back(list[i]);
        any = true;
      }
  }
  return hosts;
}

std::vector<int> spread(const Levels& levels, int part) {
  const std::vector<int> parts = parts_of(levels, part);
  if (parts.empty()) return levels[part].hosts;
  std::vector<std::vector<int>> lists;
  for (const int each : parts) lists.push_back(spread(levels, each));
  return in_turns(lists);
}

class Finder {
 public:
  Finder(const PairTable<Seconds>& latency, const PairTable<Bandwidth>& rate, Seconds noise,
         const std::vector<int>& before)
      : latency_(without_own_links(latency)),
        best_(best_rates(rate)),
        lack_(lacks(rate, best_)),
        noise_(noise.count()),
        before_(before) {
    std::vector<double> known;
    for (const double each : best_)
      if (each > 0) known.push_back(each);
    narrow_ = known.empty() ? 0 : kNarrow * median(known);
  }

  Levels find() {
    std::vector<int> all;
    for (int host = 0; host < latency_.size(); ++host) all.push_back(host);
    levels_.push_back({.hosts = all});
    divide(0);
    return levels_;
  }

 private:
  void divide(int part) {
    const std::vector<int> hosts = levels_[part].hosts;
    for (const auto& set : by_latency(hosts)) {
      levels_.push_back({.parent = part, .hosts = set});
      divide(static_cast<int>(levels_.size()) - 1);
    }
    if (static_cast<int>(levels_.size()) > part + 1) return;
    for (const auto& set : by_rate(hosts))
      levels_.push_back({.parent = part, .hosts = set, .by_rate = true});
  }

  // Divisions into sets of two or more, the coarsest first.
  static std::vector<Sets> divisions(const PairTable<double>& distance,
                                     const std::vector<int>& hosts) {
    std::vector<Sets> result;
    if (hosts.size() < 4) return result;
    for (const Sets& sets : linkage(distance, hosts))
      if (sets.size() > 1 &&
          std::ranges::all_of(sets, [](const auto& set) { return set.size() > 1; }))
        result.push_back(sets);
    return result;
  }

  // Latencies have levels: the coarsest division that holds, each set of which may be divided
  // again.
  [[nodiscard]] Sets by_latency(const std::vector<int>& hosts) const {
    const auto holds = [&](const Sets& sets) {
      const std::vector<double> near = inside(latency_, sets);
      if (near.empty()) return false;
      const double limit = kLonger * quantile(near, 0.9) + noise_;
      return all_pairs(sets, [&](const auto& a, const auto& b) {
        const std::vector<double> far = across(latency_, a, b);
        return far.empty() || quantile(far, 0.1) >= limit;
      });
    };
    for (const Sets& sets : divisions(latency_, hosts))
      if (holds(sets)) return sets;
    return {};
  }

  // Rates under load have none: the finest division that holds.
  [[nodiscard]] Sets by_rate(const std::vector<int>& hosts) const {
    std::vector<int> wide;
    std::vector<int> others;
    for (const int host : hosts) (best_[host] > narrow_ ? wide : others).push_back(host);
    const auto holds = [&](const Sets& sets) {
      const std::vector<double> near = inside(lack_, sets);
      return !near.empty() && median(near) <= std::log(kSame) &&
             all_pairs(sets, [&](const auto& a, const auto& b) {
               const std::vector<double> far = across(lack_, a, b);
               return !far.empty() && quantile(far, 0.4) >= std::log(kLess);
             });
    };
    Sets found;
    for (const Sets& sets : divisions(lack_, wide))
      if (holds(sets)) found = sets;
    if (!found.empty())
      for (const int host : others) home_of(host, found).push_back(host);
    for (auto& set : found) std::ranges::sort(set);
    std::ranges::sort(found);
    return found;
  }

  // Where a narrow host belongs: with those it was with before, else with the nearest.
  std::vector<int>& home_of(int host, Sets& sets) const {
    const auto score = [&](const std::vector<int>& set) {
      const auto known = before_.empty() ? 0 : std::ranges::count_if(set, [&](int other) {
        return before_[other] == before_[host];
      });
      const std::vector<double> near = across(latency_, {host}, set);
      return std::pair(-static_cast<double>(known), near.empty() ? 0 : median(near));
    };
    return *std::ranges::min_element(
        sets, [&](const auto& a, const auto& b) { return score(a) < score(b); });
  }

  PairTable<double> latency_;
  std::vector<double> best_;
  PairTable<double> lack_;
  double noise_;
  const std::vector<int>& before_;
  double narrow_ = 0;
  Levels levels_;
};

}  // namespace

std::vector<HostRate> host_rates(const PairTable<Bandwidth>& rate) {
  std::vector<HostRate> best(static_cast<std::size_t>(rate.size()));
  for (int a = 0; a < rate.size(); ++a)
    for (int b = 0; b < rate.size(); ++b)
      if (const auto& each = rate.at(a, b)) {
        Bandwidth& out = best[a].out;
        Bandwidth& in = best[b].in;
        out = std::max(out, *each);
        in = std::max(in, *each);
      }
  return best;
}

Levels find_levels(const PairTable<Seconds>& latency, const PairTable<Bandwidth>& rate,
                   Seconds noise, const std::vector<int>& before) {
  return Finder(latency, rate, noise, before).find();
}

std::vector<int> parts_of(const Levels& levels, int part) {
  std::vector<int> parts;
  for (std::size_t i = 0; i < levels.size(); ++i)
    if (levels[i].parent == part) parts.push_back(static_cast<int>(i));
  return parts;
}

std::vector<std::pair<int, int>> pairs_across(const Levels& levels, int part) {
  std::vector<std::vector<int>> siblings;
  for (const int other : parts_of(levels, levels[part].parent))
    if (other != part) siblings.push_back(spread(levels, other));
  const std::vector<int> own = spread(levels, part);
  const std::vector<int> others = in_turns(siblings);
  std::vector<std::pair<int, int>> pairs;
  for (std::size_t i = 0; i < std::min({own.size(), others.size(), kMostPairs}); ++i)
    pairs.emplace_back(own[i], others[i]);
  return pairs;
}

int innermost(const Levels& levels, int host) {
  // Children come after their parents.
  int found = 0;
  for (std::size_t i = 0; i < levels.size(); ++i)
    if (std::ranges::binary_search(levels[i].hosts, host)) found = static_cast<int>(i);
  return found;
}

}  // namespace riffle::measure
