// Random values of the core data, for properties that hold for all of them.
#pragma once

#include "riffle/program.h"
#include "riffle/random.h"
#include "riffle/timeline.h"
#include "riffle/trace.h"
#include "riffle/world.h"

namespace riffle {

// Names with what JSON must escape, and letters beyond ASCII.
std::string random_name(Random& random);
Trace random_trace(Random& random);
// A tree of any shape, unequal links, slow workers, measured pairs; now and then a fit.
Cluster random_cluster(Random& random);
World random_world(Random& random);
Program random_program(Random& random);
Timeline random_timeline(Random& random);

}  // namespace riffle
