// Compute times of a trace by bucket, in seconds of a healthy worker.
#pragma once

#include <vector>

#include "riffle/bucket.h"

namespace riffle::simulator {

struct BucketTimes {
  BucketTimes(const Trace& trace, const BucketPlan& buckets, Seconds optimizer);

  std::vector<double> forward;
  std::vector<double> backward;
  std::vector<double> ready;  // its gradient, from the start of backward (running sum of backward)
  std::vector<double> update;
  double all_forward = 0;
  double all_backward = 0;
  double all_update = 0;
};

}  // namespace riffle::simulator
