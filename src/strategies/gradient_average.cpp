#include "strategies/gradient_average.h"

namespace riffle {

Program average_gradients(const World& world, const BucketPlan& buckets, Start start) {
  Program program;
  for (const Bucket& bucket : buckets)
    program.add({.bucket = bucket.id,
                 .payload = Payload::gradient,
                 .group = world.ranks(),
                 .start = start,
                 .due = before_step(),
                 .merge = replace()});
  return program;
}

TrafficFormula ring_all_reduce_traffic() {
  return {.options = "algorithm=ring", .bytes = "2(N-1)/N", .messages = "2(N-1)*B"};
}

}  // namespace riffle
