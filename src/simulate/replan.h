// A run in which workers plan again by the rule of sessions (schedule/watch.h): stretches of steps,
// each under one schedule. What the workers measure is what the network is.
#pragma once

#include "riffle/simulate.h"

namespace riffle::simulator {

// SimulateOptions::steps steps (a number for runs with changes where it is zero), none left out.
Simulation simulate_replanning(const Trace& trace, const Cluster& cluster,
                               const NamedStrategy& strategy, const SimulateOptions& options);

// The cluster after all changes up to a moment.
Cluster changed(Cluster cluster, const std::vector<Change>& changes, Seconds until);

}  // namespace riffle::simulator
