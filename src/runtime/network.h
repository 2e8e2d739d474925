// The cluster that strategies plan for where the user gives none.
#pragma once

#include "riffle/cluster.h"
#include "runtime/agreement.h"

namespace riffle::runtime {

// A rack per host (flat where there is one host), with links of ordinary speed.
Cluster assumed_cluster(const Engine& engine);

// The same, with links that explain the all-reduces measured now: inside the hosts, and between
// one rank of each. All ranks take part; the result counts on the lowest.
Cluster measured_cluster(Engine& engine, const Control& control);

}  // namespace riffle::runtime
