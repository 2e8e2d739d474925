// What all exact strategies share: every bucket's gradient is averaged over the world before the
// optimizer uses it. They differ in how they cut buckets and when they start.
#pragma once

#include "riffle/strategy.h"

namespace riffle {

Program average_gradients(const World& world, const BucketPlan& buckets, Start start);

// Where everything is all-reduced once, on rings.
TrafficFormula ring_all_reduce_traffic();

}  // namespace riffle
