#include "pattern/pattern.h"

#include <map>

#include "pattern/parts.h"
#include "riffle/error.h"

namespace riffle::pattern {

std::vector<RoundClass> Pattern::round_classes() const {
  std::vector<RoundClass> classes;
  for (int round = 0; round < rounds_; ++round) classes.push_back({round, 1});
  return classes;
}

std::vector<int> halving_skips(int n) {
  std::vector<int> skips{n};
  while (skips.back() > 1) skips.push_back((skips.back() + 1) / 2);
  return skips;
}

std::vector<std::vector<int>> rack_positions(const Group& group, const Cluster& cluster) {
  std::map<int, std::vector<int>> by_domain;
  int position = 0;
  for (const Rank rank : group) by_domain[cluster.workers[rank].domain].push_back(position++);
  std::vector<std::vector<int>> racks;
  for (auto& [domain, positions] : by_domain) racks.push_back(std::move(positions));
  return racks;
}

std::unique_ptr<Pattern> make_pattern(Algorithm algorithm, Collective collective, int n,
                                      const std::vector<std::vector<int>>& racks, int places) {
  if (collective == Collective::shift) return shift(n, places);
  if (collective == Collective::serve) return direct(n, Collective::all_reduce);
  const bool whole = collective == Collective::all_reduce;
  switch (algorithm) {
    case Algorithm::ring:
      return ring(n, collective);
    case Algorithm::direct:
      return direct(n, collective);
    case Algorithm::recursive_doubling:
      if (whole) return recursive_doubling(n);
      break;
    case Algorithm::two_level:
      if (whole && racks.size() > 1) return two_level(n, racks);
      break;
    case Algorithm::tree:
      if (whole) usage_error("algorithm tree has a cost formula only, no messages of its own");
      break;
    case Algorithm::halving_doubling:
    case Algorithm::automatic:
      break;
  }
  return halving_doubling(n, collective);
}

}  // namespace riffle::pattern
