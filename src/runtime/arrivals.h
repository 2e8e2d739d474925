// Which gradients of a step have come, and when. One thread at a time.
#pragma once

#include <vector>

#include "riffle/engine.h"
#include "riffle/session.h"
#include "riffle/units.h"

namespace riffle::runtime {

class Arrivals {
 public:
  explicit Arrivals(std::size_t parameters);

  // A step begins, with these buckets.
  void begin(const BucketPlan& buckets);
  // The parameter was used; also where nothing is exchanged in this backward.
  void use(int parameter) { used_[parameter] = 1; }
  // Its gradient is complete. True where it is the last one of its bucket.
  bool arrive(int parameter, int bucket);
  [[nodiscard]] bool has_arrived(int parameter) const { return arrived_[parameter] != 0; }
  // By parameter: this rank used it since the last step's end; and in the step before that.
  [[nodiscard]] const std::vector<char>& used() const { return used_; }
  [[nodiscard]] const std::vector<char>& used_before() const { return used_before_; }
  void end();

  // Times of layers, from the steps after the first few: none until there are enough.
  [[nodiscard]] bool is_measured() const { return steps_ >= kMeasured; }
  // With the measured times in the place of those of `trace`.
  [[nodiscard]] Trace measured(Trace trace) const;

 private:
  // The first steps warm up: pages, caches, lazily made optimizer state.
  static constexpr int kWarmUp = 2;
  static constexpr int kMeasured = 5;
  void note_times();

  std::vector<int> missing_;  // by bucket
  std::vector<char> arrived_;
  std::vector<char> used_;
  std::vector<char> used_before_;
  std::vector<Clock::time_point> at_;
  std::vector<Seconds> times_;  // summed
  int steps_ = 0;
};

}  // namespace riffle::runtime
