#include "riffle/bucket.h"

#include <fmt/format.h>

#include <ranges>

#include "riffle/error.h"

namespace riffle {

std::optional<MatrixShape> matrix_of(const std::vector<std::int64_t>& shape, DType dtype) {
  if (shape.size() < 2) return std::nullopt;
  MatrixShape matrix{.rows = shape.front(), .columns = 1};
  for (const std::int64_t size : shape | std::views::drop(1)) matrix.columns *= size;
  matrix.bytes = size_of(dtype) * (matrix.rows * matrix.columns);
  return matrix;
}

BucketPlan make_buckets(const Trace& trace, const std::vector<int>& layers_each) {
  BucketPlan plan;
  int end = static_cast<int>(trace.layers.size());
  for (const int count : layers_each) {
    Bucket bucket{
        .id = static_cast<int>(plan.size()), .first = end - count, .last = end - 1, .bytes = {}};
    RIFFLE_CHECK(count > 0 && bucket.first >= 0);
    for (int i = bucket.first; i < end; ++i) {
      const Layer& layer = trace.layers[i];
      bucket.bytes += trace.bytes(layer);
      bucket.compute += layer.forward + layer.backward;
      if (const auto matrix = matrix_of(layer.shape, trace.dtype))
        bucket.matrices.push_back(*matrix);
    }
    plan.push_back(bucket);
    end = bucket.first;
  }
  RIFFLE_CHECK_EQ(end, 0);
  return plan;
}

BucketPlan one_bucket(const Trace& trace) {
  return make_buckets(trace, {static_cast<int>(trace.layers.size())});
}

BucketPlan bucket_per_layer(const Trace& trace) {
  return make_buckets(trace, std::vector<int>(trace.layers.size(), 1));
}

std::string print(const BucketPlan& buckets, const Trace& trace) {
  std::string text;
  for (const Bucket& bucket : buckets)
    text += fmt::format("bucket {}: {} .. {} ({} layers, {})\n", bucket.id,
                        trace.layers[bucket.first].name, trace.layers[bucket.last].name,
                        bucket.last - bucket.first + 1, print(bucket.bytes));
  return text;
}

}  // namespace riffle
