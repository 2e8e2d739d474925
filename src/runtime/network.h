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

// How much of the time that exchanges take they hide under computing, 0 to 1. Between hosts they
// mostly wait, so all of it; inside a host they are work for a core, so it takes one that does not
// compute.
double overlap_share(const Engine& engine, int compute_threads, unsigned cores);
// The times in which something can be hidden.
Trace overlapped(Trace trace, double share);

}  // namespace riffle::runtime
