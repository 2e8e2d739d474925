#include "simulate/bucket_times.h"

namespace riffle::simulator {

BucketTimes::BucketTimes(const Trace& trace, const BucketPlan& buckets, Seconds optimizer)
    : all_update(optimizer.count()) {
  const auto all_bytes = static_cast<double>(trace.bytes().count);
  for (const Bucket& bucket : buckets) {
    double forward_sum = 0;
    double backward_sum = 0;
    for (int layer = bucket.first; layer <= bucket.last; ++layer) {
      forward_sum += trace.layers[layer].forward.count();
      backward_sum += trace.layers[layer].backward.count();
    }
    forward.push_back(forward_sum);
    backward.push_back(backward_sum);
    all_forward += forward_sum;
    all_backward += backward_sum;
    ready.push_back(all_backward);
    update.push_back(optimizer.count() * static_cast<double>(bucket.bytes.count) / all_bytes);
  }
}

}  // namespace riffle::simulator
