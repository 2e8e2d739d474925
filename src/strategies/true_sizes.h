// Strategies where messages carry 1/shrink of their bytes, as in `riffle lab --shrink`.
#pragma once

#include "riffle/strategy.h"

namespace riffle {

// The same strategy for a model whose tensors stand for ones `shrink` times larger: layers are
// merged into the buckets of the true model, so every size that a strategy knows (ddp's 25 MiB,
// a bucket= of the user) means what it means without --shrink, to the layer. `elements` are those
// of the true layers, in order; trace and cluster are given as they are emulated.
NamedStrategy with_true_sizes(NamedStrategy strategy, std::vector<std::int64_t> elements,
                              double shrink);
// A table that makes all its strategies so.
StrategyTable with_true_sizes(const StrategyTable& table, const std::vector<std::int64_t>& elements,
                              double shrink);

}  // namespace riffle
