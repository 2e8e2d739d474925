// What differs between two measurements of a cluster, in words for a log.
#pragma once

#include <string>
#include <vector>

#include "riffle/world.h"

namespace riffle::model {

// A line for each difference that counts: other racks, links of any level on which a message of
// 256 KiB or 4 MiB takes half as long again, hosts that compute slowly or no longer do. Empty:
// measurements of the same.
std::vector<std::string> changes(const Cluster& before, const Cluster& now);

// "2 racks: 0-3, 4-7; slow: 5 (link), 6 (compute)"
std::string summary(const Cluster& cluster);

// The workers that a domain's uplink leads to.
Group ranks_below(const Cluster& cluster, int domain);

// "0-3, 6"
std::string ranges(const Group& ranks);

}  // namespace riffle::model
