// Patterns of a broadcast: one vector from the root to everybody. Member indices count from the
// root, cyclically.
#pragma once

#include <memory>

#include "pattern/pattern.h"

namespace riffle::pattern {

// ring: a chain, each member passes on what it got; rounds n-1, but pieces of the vector follow
// each other closely, so that large vectors take the time of one transfer.
// direct: the root sends to everybody in one round.
// two_level: the root sends to one member of each other rack, these and the root to their racks.
// All others: a binomial tree, ceil(log2 n) rounds.
std::unique_ptr<Pattern> make_broadcast_pattern(Algorithm algorithm, int n, int root,
                                                const std::vector<std::vector<int>>& racks = {});

}  // namespace riffle::pattern
