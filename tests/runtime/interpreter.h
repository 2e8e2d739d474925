// What programs mean, on plain vectors: the rules of riffle/program.h read aloud, all workers in
// one loop. It knows no strategy by name, so it holds for every one; reference.h has the papers'
// rules of those that are known, and a test compares the two. Nothing of the runtime is used.
#pragma once

#include "riffle/strategy.h"
#include "runtime/toy.h"

namespace riffle::test {

// The weights of all workers after so many steps of the toy, all starting from rank 0's.
std::vector<Vector> interpret(const NamedStrategy& strategy, const World& world, int steps);

// A plan of one bucket: merges work on each element alone, so how a model is cut does not matter.
BucketPlan any_bucket();

}  // namespace riffle::test
