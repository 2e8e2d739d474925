#include "runtime/arrivals.h"

#include <algorithm>
#include <numeric>

namespace riffle::runtime {

Arrivals::Arrivals(std::size_t parameters)
    : arrived_(parameters),
      used_(parameters),
      used_before_(parameters),
      at_(parameters),
      times_(parameters) {}

void Arrivals::begin(const BucketPlan& buckets) {
  missing_.clear();
  for (const Bucket& bucket : buckets) missing_.push_back(bucket.last - bucket.first + 1);
  std::ranges::fill(arrived_, 0);
}

bool Arrivals::arrive(int parameter, int bucket) {
  arrived_[parameter] = 1;
  at_[parameter] = Clock::now();
  return --missing_[bucket] == 0;
}

void Arrivals::end() {
  note_times();
  used_before_ = used_;
  std::ranges::fill(used_, 0);
}

// The time between a gradient and the one that was ready just before it is its own.
void Arrivals::note_times() {
  if (is_measured() || ++steps_ <= kWarmUp) return;
  std::vector<int> order;
  for (std::size_t p = 0; p < arrived_.size(); ++p)
    if (arrived_[p]) order.push_back(static_cast<int>(p));
  std::ranges::sort(order, {}, [&](int p) { return at_[p]; });
  for (std::size_t i = 1; i < order.size(); ++i)
    times_[order[i]] += at_[order[i]] - at_[order[i - 1]];
}

Trace Arrivals::measured(Trace trace) const {
  const auto steps = static_cast<double>(kMeasured - kWarmUp);
  const Seconds all = std::accumulate(times_.begin(), times_.end(), Seconds{});
  // The first one that was ready has nothing to be measured from; it gets the mean.
  const Seconds mean = all / (steps * static_cast<double>(times_.size()));
  for (std::size_t p = 0; p < trace.layers.size(); ++p) {
    const Seconds own = times_[p] / steps;
    trace.layers[p].backward = own > Seconds{} ? own : mean;
    trace.layers[p].forward = trace.layers[p].backward / 2;
  }
  trace.source = "measured: gradients of the first steps";
  return trace;
}

}  // namespace riffle::runtime
