#include "report/group_lists.h"

#include <algorithm>

namespace riffle::report {
namespace {

// A shift by k falls into as many rings as n and k have in common.
std::vector<std::vector<Rank>> rings(const std::vector<Rank>& ranks, int shift) {
  std::vector<std::vector<Rank>> found;
  std::vector<bool> seen(ranks.size(), false);
  const auto places = static_cast<std::size_t>(std::abs(shift)) % ranks.size();
  for (std::size_t first = 0; first < ranks.size(); ++first) {
    if (seen[first]) continue;
    std::vector<Rank>& ring = found.emplace_back();
    for (std::size_t i = first; !seen[i]; i = (i + places) % ranks.size()) {
      seen[i] = true;
      ring.push_back(ranks[i]);
    }
    std::ranges::sort(ring);
  }
  return found;
}

}  // namespace

std::vector<std::vector<Rank>> group_lists(const Program& program, int bucket) {
  std::vector<std::vector<Rank>> lists;
  for (const Exchange& exchange : program.exchanges) {
    if (exchange.bucket != bucket || exchange.group.empty()) continue;
    const std::vector<Rank>& ranks = exchange.group.ranks();
    const auto parts = exchange.collective == Collective::shift
                           ? rings(ranks, exchange.shift)
                           : std::vector<std::vector<Rank>>{ranks};
    for (const auto& part : parts)
      if (part.size() > 1 && std::ranges::find(lists, part) == lists.end()) lists.push_back(part);
  }
  return lists;
}

}  // namespace riffle::report
