#include "strategies/grouping.h"

#include <algorithm>
#include <cmath>

#include "riffle/random.h"

namespace riffle {
namespace {

// Whether a is nearer to g than b is, by ratio; the smaller of two equally near.
bool nearer(std::int64_t a, std::int64_t b, std::int64_t g) {
  return std::max(a, g) * std::min(b, g) < std::max(b, g) * std::min(a, g);
}

using Lists = std::vector<std::vector<Rank>>;

// Consecutive runs whose lengths differ by one at most, the longer ones first.
Lists runs(std::span<const Rank> ranks, int count) {
  Lists lists;
  const auto size = static_cast<int>(ranks.size()) / count;
  const auto longer = static_cast<int>(ranks.size()) % count;
  for (int i = 0, at = 0; i < count; ++i) {
    const int length = size + (i < longer ? 1 : 0);
    const auto run = ranks.subspan(at, length);
    lists.emplace_back(run.begin(), run.end());
    at += length;
  }
  return lists;
}

// The first of every list, the second of every list, and so on.
Lists transposed(const Lists& lists) {
  Lists places(lists.front().size());
  for (const auto& list : lists)
    for (std::size_t place = 0; place < list.size(); ++place) places[place].push_back(list[place]);
  return places;
}

Partition as_groups(const Lists& lists) {
  Partition partition;
  for (const auto& list : lists) partition.emplace_back(list);
  return partition;
}

// Ranks whose numbers in the mixed radix differ only in one digit, digit by digit.
std::vector<Partition> exact_rounds(const std::vector<Rank>& ranks,
                                    const std::vector<int>& factors) {
  std::vector<Partition> rounds;
  int stride = 1;
  for (const int radix : factors) {
    Partition groups;
    for (int first = 0; first < static_cast<int>(ranks.size()); ++first) {
      if (first / stride % radix != 0) continue;
      std::vector<Rank> members;
      members.reserve(static_cast<std::size_t>(radix));
      for (int digit = 0; digit < radix; ++digit) members.push_back(ranks[first + digit * stride]);
      groups.emplace_back(std::move(members));
    }
    rounds.push_back(std::move(groups));
    stride *= radix;
  }
  return rounds;
}

// Cut, then riffle the runs into each other, and again: rotating digits, for any n.
std::vector<Partition> riffled_rounds(std::vector<Rank> order, int g) {
  const auto n = static_cast<int>(order.size());
  std::vector<Partition> rounds;
  for (std::int64_t reached = 1; reached < n; reached *= g) {
    const Lists lists = runs(order, group_count(n, g));
    rounds.push_back(as_groups(lists));
    order.clear();
    for (const auto& place : transposed(lists))
      order.insert(order.end(), place.begin(), place.end());
  }
  return rounds;
}

}  // namespace

int default_group(int n) {
  if (n < 4) return n;
  const double root = std::sqrt(n);
  int best = 0;
  for (int d = 2; d < n; ++d)
    if (n % d == 0 && d <= 2 * root && root <= 2.0 * d &&
        (best == 0 || std::abs(d - root) < std::abs(best - root)))
      best = d;
  return best != 0 ? best : std::max(2, static_cast<int>(std::lround(root)));
}

int group_count(int n, int about) {
  const auto count = static_cast<int>(std::lround(static_cast<double>(n) / about));
  return std::clamp(count, 1, std::max(1, n / 2));
}

Partition cut(std::span<const Rank> ranks, int groups) {
  return as_groups(runs(ranks, groups));
}

std::vector<int> radices(int n, int g) {
  if (g >= n) return {n};
  std::vector<int> factors;
  for (int rest = n; rest > 1; rest /= factors.back()) {
    int best = 0;
    for (int d = 2; d <= rest; ++d)
      if (rest % d == 0 && d != n && (best == 0 || nearer(d, best, g))) best = d;
    if (best == 0 || best > 4 * g) return {};
    factors.push_back(best);
  }
  return factors;
}

std::vector<Partition> digit_rounds(const Group& ranks, int g) {
  const std::vector<int> factors = radices(ranks.size(), g);
  return factors.empty() ? riffled_rounds(ranks.ranks(), g) : exact_rounds(ranks.ranks(), factors);
}

std::vector<Partition> grid_rounds(const Group& ranks) {
  const int rows = default_group(ranks.size());
  if (rows >= ranks.size()) return {{ranks}};
  const Lists lists = runs(ranks.ranks(), rows);
  return {as_groups(lists), as_groups(transposed(lists))};
}

Partition random_groups(const Group& ranks, int g, std::uint64_t seed, std::uint64_t draw) {
  std::vector<Rank> order = ranks.ranks();
  Random(seed, draw).shuffle(std::span(order));
  return cut(order, group_count(ranks.size(), g));
}

}  // namespace riffle
