#include "runtime/arrivals.h"

#include <algorithm>

namespace riffle::runtime {

Arrivals::Arrivals(std::size_t parameters)
    : arrived_(parameters), used_(parameters), used_before_(parameters) {}

void Arrivals::begin(const BucketPlan& buckets) {
  missing_.clear();
  for (const Bucket& bucket : buckets) missing_.push_back(bucket.last - bucket.first + 1);
  std::ranges::fill(arrived_, 0);
}

bool Arrivals::arrive(int parameter, int bucket) {
  arrived_[parameter] = 1;
  return --missing_[bucket] == 0;
}

void Arrivals::end() {
  used_before_ = used_;
  std::ranges::fill(used_, 0);
}

}  // namespace riffle::runtime
