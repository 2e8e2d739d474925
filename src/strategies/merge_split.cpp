#include <algorithm>

#include "riffle/error.h"
#include "strategies/merge.h"

namespace riffle {
namespace {

// How the messages of the first j layers can end: none of the pairs beats another in both.
struct End {
  double first = 0;   // F: end of the first halves, from the start of backward
  double second = 0;  // G: time from the first second half to the end of forward
  int begin = 0;      // the last message starts here ...
  int rank = 0;       // ... after this pair of `begin`
};

// Keeps what no other beats, ascending in F and so descending in G.
void keep_best(std::vector<End>& ends) {
  std::ranges::sort(ends, [](const End& a, const End& b) {
    return a.first != b.first ? a.first < b.first : a.second < b.second;
  });
  std::vector<End> kept;
  for (const End& end : ends)
    if (kept.empty() || end.second < kept.back().second) kept.push_back(end);
  ends = std::move(kept);
}

// Neighbours joined so that at most kMostSplitLayers units are left: how many layers each takes.
std::vector<int> units(std::size_t layers) {
  const std::size_t count = std::min<std::size_t>(layers, kMostSplitLayers);
  std::vector<int> sizes;
  sizes.reserve(count);
  for (std::size_t u = 0; u < count; ++u)
    sizes.push_back(static_cast<int>((u + 1) * layers / count - u * layers / count));
  return sizes;
}

}  // namespace

std::vector<int> merge_split(const std::vector<ReadyLayer>& layers,
                             const std::vector<Seconds>& needed, const Curve& first,
                             const Curve& second) {
  RIFFLE_CHECK_EQ(layers.size(), needed.size());
  const std::vector<int> unit = units(layers.size());
  const auto count = static_cast<int>(unit.size());
  std::vector<std::vector<End>> ends(static_cast<std::size_t>(count) + 1);
  std::vector<Bytes> before(static_cast<std::size_t>(count) + 1);
  ends[0].push_back({});
  std::size_t layer = 0;
  for (int j = 1; j <= count; ++j) {
    before[j] = before[j - 1];
    for (int i = 0; i < unit[j - 1]; ++i) before[j] += layers[layer++].bytes;
    const double ready = layers[layer - 1].ready.count();
    const double need = needed[layer - 1].count();
    std::vector<End>& here = ends[j];
    for (int i = 0; i < j; ++i) {
      const double send = first(before[j] - before[i]).count();
      const double gather = second(before[j] - before[i]).count();
      for (int rank = 0; rank < static_cast<int>(ends[i].size()); ++rank)
        here.push_back({std::max(ends[i][rank].first, ready) + send,
                        std::max(ends[i][rank].second, need) + gather, i, rank});
    }
    keep_best(here);
  }

  const auto best = std::ranges::min_element(ends[count], {},
                                             [](const End& end) { return end.first + end.second; });
  std::vector<int> layers_each;
  int at = count;
  for (const End* end = &*best; at > 0; end = &ends[end->begin][end->rank]) {
    int message = 0;
    for (int u = end->begin; u < at; ++u) message += unit[u];
    layers_each.push_back(message);
    at = end->begin;
    if (at == 0) break;
  }
  std::ranges::reverse(layers_each);
  return layers_each;
}

}  // namespace riffle
