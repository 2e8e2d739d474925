// Buckets: contiguous runs of layers that travel as one message.
#pragma once

#include <string>
#include <vector>

#include "riffle/trace.h"

namespace riffle {

// Layers first..last of the trace, in forward order.
struct Bucket {
  int id = 0;
  int first = 0;
  int last = 0;
  Bytes bytes;
  Seconds compute{};  // forward and backward of its layers
  Bytes buffers{};    // that travel with it besides its weights (BatchNorm's statistics)
  bool operator==(const Bucket&) const = default;
};

// In the order backward completes them: bucket 0 holds the last layers. Each layer is in exactly
// one bucket.
using BucketPlan = std::vector<Bucket>;

// Buckets of `layers_each[k]` layers, counted from the last layer backward.
BucketPlan make_buckets(const Trace& trace, const std::vector<int>& layers_each);
BucketPlan one_bucket(const Trace& trace);
BucketPlan bucket_per_layer(const Trace& trace);

std::string print(const BucketPlan& buckets, const Trace& trace);

}  // namespace riffle
