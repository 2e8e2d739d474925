// What exchanges can be hidden under.
#pragma once

#include "riffle/engine.h"
#include "riffle/trace.h"

namespace riffle::runtime {

// How much of the time that exchanges take they hide under computing, 0 to 1. Between hosts they
// mostly wait, so all of it; inside a host they are work for a core, so it takes one that does not
// compute.
double overlap_share(const Engine& engine, int compute_threads, unsigned cores);
// The times in which something can be hidden.
Trace overlapped(Trace trace, double share);

}  // namespace riffle::runtime
