// Patterns of a reduction to a root: a broadcast, backward.
#pragma once

#include <memory>

#include "pattern/pattern.h"

namespace riffle::pattern {

// The tree of make_broadcast_pattern for this algorithm, from the leaves to the root: who would
// hear from a member sends to it, and it adds.
std::unique_ptr<Pattern> make_reduce_pattern(Algorithm algorithm, int n, int root,
                                             const std::vector<std::vector<int>>& racks = {});

}  // namespace riffle::pattern
