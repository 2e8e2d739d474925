// Hierarchical clustering with average linkage: the two sets that are nearest on the mean are
// joined, until one is left. Lance and Williams, 1967. n^3 for n items.
#pragma once

#include <vector>

#include "measure/pair_table.h"

namespace riffle::measure {

using Sets = std::vector<std::vector<int>>;

// The items in k sets, for every k: result[k - 1] has k of them, each ascending, in the order of
// their first items. Pairs without a distance count for nothing; sets that have none between them
// are joined last.
std::vector<Sets> linkage(const PairTable<double>& distance, const std::vector<int>& items);

}  // namespace riffle::measure
