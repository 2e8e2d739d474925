// Buckets: contiguous runs of layers that travel as one message.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "riffle/trace.h"

namespace riffle {

// That a gradient of a bucket is, from the shape of its layer.
struct MatrixShape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Bytes bytes{};
  bool operator==(const MatrixShape&) const = default;
};

// The matrix of a layer: the first dimension of its shape by all others; nothing for a vector.
std::optional<MatrixShape> matrix_of(const std::vector<std::int64_t>& shape, DType dtype);

// Layers first..last of the trace, in forward order.
struct Bucket {
  int id = 0;
  int first = 0;
  int last = 0;
  Bytes bytes;
  Seconds compute{};  // forward and backward of its layers
  Bytes buffers{};    // that travel with it besides its weights (BatchNorm's statistics)
  std::vector<MatrixShape> matrices{};  // those of its layers that have a shape
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
