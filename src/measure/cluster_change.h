// What differs between two measurements of a cluster, in words for a log.
#pragma once

#include <string>
#include <vector>

#include "riffle/world.h"

namespace riffle::measure {

// A line for each difference that counts: other racks, links on which a message of 256 KiB takes
// half as long again, hosts that compute slowly or no longer do. Empty: measurements of the same.
std::vector<std::string> changes(const Cluster& before, const Cluster& now);

// "2 racks: 0-3, 4-7; slow: 5 (link), 6 (compute)"
std::string summary(const Cluster& cluster);

// "0-3, 6"
std::string ranges(const Group& ranks);

}  // namespace riffle::measure
