// Our own generator: the standard library's shuffles and distributions differ between
// implementations, so ranks could disagree. Same seed, same numbers, everywhere.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace riffle {

// SplitMix64 (Steele, Lea, Flood 2014): one 64-bit state, every seed is good.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  // An independent stream for each pair, e.g. (seed, step) or (seed, rank).
  Random(std::uint64_t seed, std::uint64_t stream);

  std::uint64_t next();
  // Uniform in [0, bound), without modulo bias. bound > 0.
  std::uint64_t below(std::uint64_t bound);
  // Uniform in [0, 1), 53 bits.
  double uniform();
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // Normal with mean 0 and deviation 1 (Box-Muller, one value per call).
  double normal();

  template <typename T>
  void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }
  // 0..n-1 in random order.
  std::vector<int> permutation(int n);

 private:
  std::uint64_t state_;
};

}  // namespace riffle
