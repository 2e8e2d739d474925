// What `verify --workers N`, `explain` and the table of traffic look at where nothing is given.
#pragma once

#include "riffle/cluster.h"
#include "riffle/trace.h"

namespace riffle {

// Racks of the default group of 10 Gbit/s links, joined by 1 Gbit/s.
Cluster example_racks(int workers);
// A small model of four layers.
Trace example_trace();

}  // namespace riffle
