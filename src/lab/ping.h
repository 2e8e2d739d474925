// Ping, with a socket of our own.
#pragma once

#include <vector>

#include "riffle/units.h"

namespace riffle::lab {

// Round trips from the network of the calling thread to a host, one after the other; those that
// did not come back in time are left out. `payload` bytes are added to each.
std::vector<Seconds> ping(int host, int count, int payload, Seconds timeout);

// Of at least one.
Seconds median(std::vector<Seconds> times);

}  // namespace riffle::lab
