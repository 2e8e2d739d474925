// The cluster that strategies plan for where the user gives none.
#pragma once

#include <functional>

#include "collective/control.h"
#include "riffle/cluster.h"

namespace riffle::measure {

// Ranks by host, in the order of their first rank.
Partition by_host(const Engine& engine);

// A rack per host (flat where there is one host), with links of ordinary speed.
Cluster assumed_cluster(const Engine& engine);

// The same, with links that explain all-reduces timed now (calls.h): inside the hosts, and between
// one rank of each. All ranks take part; the result counts on the lowest.
Cluster measured_cluster(Engine& engine, const collective::Control& control);

// Racks and slow hosts, found by messages between all pairs (pairs.h, topology.h), measured until
// two measurements in a row say the same; `before` are the racks so far, none at the start. All
// ranks take part and have the same result.
Cluster sensed_cluster(Engine& engine, const collective::Control& control, const Partition& before,
                       const std::function<void()>& look_around);

}  // namespace riffle::measure
