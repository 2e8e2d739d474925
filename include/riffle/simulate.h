// The timing simulator: how long a step takes under a strategy on a cluster, and why.
#pragma once

#include "riffle/simulation.h"
#include "riffle/strategy.h"

namespace riffle {

Simulation simulate(const Trace& trace, const Cluster& cluster, const NamedStrategy& strategy);

}  // namespace riffle
