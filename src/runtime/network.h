// The cluster that strategies plan for where the user gives none.
#pragma once

#include <functional>

#include "riffle/cluster.h"
#include "riffle/cost.h"
#include "runtime/control.h"

namespace riffle::runtime {

// Ranks by host, in the order of their first rank.
Partition by_host(const Engine& engine);

// A rack per host (flat where there is one host), with links of ordinary speed.
Cluster assumed_cluster(const Engine& engine);

// The same, with links that explain the all-reduces measured now: inside the hosts, and between
// one rank of each. All ranks take part; the result counts on the lowest.
Cluster measured_cluster(Engine& engine, const Control& control);

// Racks and slow hosts, found by messages between all pairs (probe.h, topology.h), measured until
// two measurements in a row say the same; `before` are the racks so far, none at the start. All
// ranks take part and have the same result.
Cluster sensed_cluster(Engine& engine, const Control& control, const Partition& before,
                       const std::function<void()>& look_around);

// How an exchange runs: as its program says, or where that leaves it open, across hosts by what the
// agreed cluster makes cheapest; inside a host the members' shared memory decides.
Algorithm algorithm_for(const Engine& engine, const CostModel& cost, const Exchange& exchange,
                        Bytes size);

}  // namespace riffle::runtime
