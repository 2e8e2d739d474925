// Where the tensors of a model lie in the flat memory of its buckets. Buffers travel with the last
// bucket, which holds the first layers.
#pragma once

#include <vector>

#include "riffle/bucket.h"
#include "riffle/session.h"
#include "runtime/flat.h"

namespace riffle::runtime {

// Room for so many values of one tensor, at the end of the part of their type.
Place append(Parts& parts, int bucket, DType dtype, std::int64_t count);

struct Layout {
  // Sets Bucket::buffers of the plan.
  Layout(const ModelSpec& model, BucketPlan plan);

  BucketPlan buckets;
  // By bucket; a bucket holds the parameters first..last. Gradients have a flag more for each.
  std::vector<Parts> gradient_parts;
  std::vector<Parts> weight_parts;
  std::vector<Parts> buffer_parts;
  std::vector<Place> gradients;  // by parameter
  std::vector<Place> weights;    // by parameter
  std::vector<Place> buffers;
  std::vector<int> bucket_of;  // by parameter
};

}  // namespace riffle::runtime
