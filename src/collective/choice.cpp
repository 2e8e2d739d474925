#include "collective/choice.h"

#include <algorithm>
#include <bit>

namespace riffle::collective {

bool is_on_one_host(const Engine& engine, const Group& group) {
  const std::string& first = engine.host(group.ranks().front());
  return std::ranges::all_of(group, [&](Rank rank) { return engine.host(rank) == first; });
}

Algorithm algorithm_for(const Engine& engine, const CostModel& agreed, const Exchange& exchange,
                        Bytes size) {
  if (exchange.collective == Collective::shift || is_on_one_host(engine, exchange.group))
    return exchange.algorithm;
  return agreed.algorithm(exchange, size);
}

Algorithm default_algorithm(Operation operation, int members, Bytes size,
                            const std::vector<std::vector<int>>& racks) {
  constexpr Bytes small = kibibytes(4);
  constexpr Bytes large = mebibytes(1);
  const bool in_pairs =
      std::ranges::all_of(racks, [](const auto& rack) { return rack.size() > 1; });
  const bool levels = racks.size() > 1 && in_pairs;
  switch (operation) {
    case Operation::barrier:
      return Algorithm::automatic;
    case Operation::shift:
      return Algorithm::direct;
    case Operation::broadcast:
    case Operation::reduce:
      if (levels) return Algorithm::two_level;
      return size >= large && members > 2 ? Algorithm::ring : Algorithm::halving_doubling;
    case Operation::all_reduce:
      if (size <= small && std::has_single_bit(static_cast<unsigned>(members)))
        return Algorithm::recursive_doubling;
      if (levels) return Algorithm::two_level;
      break;
    default:
      break;
  }
  return members <= kLargestDirect ? Algorithm::direct : Algorithm::halving_doubling;
}

}  // namespace riffle::collective
