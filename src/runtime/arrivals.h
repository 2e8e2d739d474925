// Which gradients of a step have come. One thread at a time.
#pragma once

#include <vector>

#include "riffle/session.h"

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

 private:
  std::vector<int> missing_;  // by bucket
  std::vector<char> arrived_;
  std::vector<char> used_;
  std::vector<char> used_before_;
};

}  // namespace riffle::runtime
