// How a strategy cuts a model where the user may choose: bucket=optimal|layer|single|SIZE.
#pragma once

#include "riffle/strategy.h"

namespace riffle {

// A bucket is closed when it holds `size`, the first one when it holds `first`.
std::vector<int> layers_by_size(const Trace& trace, Bytes size, Bytes first);

// So many buckets of about the same size; fewer where there are fewer layers.
std::vector<int> layers_by_share(const Trace& trace, int count);

class Bucketing {
 public:
  // Reads `bucket` and `wire`.
  explicit Bucketing(const Options& options);

  // optimal fits the slowest exchange of the strategy's first steps that nothing delays. One that
  // starts when the step is done has no backward to hide under: one bucket is best.
  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& cost, const World& world,
                                   const Strategy& strategy) const;

 private:
  std::string how_;
  Bytes size_;
  Wire wire_;
};

OptionInfo bucket_option();

}  // namespace riffle
