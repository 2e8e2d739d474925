// What programs mean, on plain vectors: the rules of riffle/program.h read aloud, all workers in
// one loop. It knows no strategy by name, so it holds for every one; reference.h has the papers'
// rules of those that are known, and a test compares the two. Nothing of the runtime is used.
#pragma once

#include "riffle/strategy.h"
#include "runtime/toy.h"

namespace riffle::test {

// The weights of all workers after so many steps of the toy, all starting from rank 0's.
std::vector<Vector> interpret(const NamedStrategy& strategy, const World& world, int steps);

// How the strategy cuts the toy.
BucketPlan toy_buckets(const NamedStrategy& strategy, const World& world);
// A plan of one bucket, for who meets whom: merges work on each element alone, so how a model is
// cut does not matter where all of it is exchanged together.
BucketPlan any_bucket();
// The elements of the toy that a bucket holds.
struct Columns {
  std::size_t begin = 0;
  std::size_t end = 0;
};
Columns columns_of(const Bucket& bucket);

}  // namespace riffle::test
