// The pattern of a barrier, to be run on no elements: nobody is through before all have come.
#pragma once

#include <memory>

#include "pattern/pattern.h"

namespace riffle::pattern {

// Automatic: dissemination; in round r everybody tells the member 2^r places on. ceil(log2 n)
// rounds. Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization", 1988.
// Others: the messages of that all-reduce, which are a barrier when they are empty, as each member
// needs all the others' contributions.
std::unique_ptr<Pattern> make_barrier_pattern(Algorithm algorithm, int n,
                                              const std::vector<std::vector<int>>& racks = {});

}  // namespace riffle::pattern
