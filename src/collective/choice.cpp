#include "collective/choice.h"

#include <algorithm>

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

}  // namespace riffle::collective
