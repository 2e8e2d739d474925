#include "runtime/layout.h"

#include <algorithm>

#include "riffle/error.h"

namespace riffle::runtime {

Place append(Parts& parts, int bucket, DType dtype, std::int64_t count) {
  auto part = std::ranges::find(parts, dtype, &Part::dtype);
  if (part == parts.end()) part = parts.insert(parts.end(), {.dtype = dtype});
  const Place place{.bucket = bucket,
                    .part = static_cast<int>(part - parts.begin()),
                    .offset = part->count,
                    .count = static_cast<std::size_t>(count)};
  part->count = aligned(part->count + place.count, part->dtype);
  return place;
}

Layout::Layout(const ModelSpec& model, BucketPlan plan)
    : buckets(std::move(plan)),
      gradient_parts(buckets.size()),
      weight_parts(buckets.size()),
      buffer_parts(buckets.size()),
      gradients(model.parameters.size()),
      weights(model.parameters.size()),
      bucket_of(model.parameters.size()) {
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const int id = static_cast<int>(b);
    RIFFLE_CHECK_EQ(buckets[b].id, id);
    for (int p = buckets[b].first; p <= buckets[b].last; ++p) {
      const TensorSpec& parameter = model.parameters.at(p);
      bucket_of[p] = id;
      weights[p] = append(weight_parts[b], id, parameter.dtype, parameter.elements);
      gradients[p] = append(gradient_parts[b], id, parameter.dtype, parameter.elements);
    }
    for (int p = buckets[b].first; p <= buckets[b].last; ++p)
      gradients[p].flag = gradient_parts[b][gradients[p].part].count++;
  }
  Bucket& last = buckets.back();
  last.buffers = {};
  for (const TensorSpec& buffer : model.buffers) {
    buffers.push_back(append(buffer_parts[last.id], last.id, buffer.dtype, buffer.elements));
    last.buffers += Bytes{buffer.elements * size_of(buffer.dtype).count};
  }
}

}  // namespace riffle::runtime
