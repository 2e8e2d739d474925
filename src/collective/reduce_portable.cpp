// Reductions in plain C++: a tile of the sum is kept in the first-level cache while one input after
// the other is added, in loops the compiler vectorizes.
#include <algorithm>
#include <cstring>

#include "codec/half.h"
#include "collective/reduce_kernels.h"

namespace riffle::collective {
namespace {

constexpr std::size_t tile = 256;

template <typename T>
struct Plain {
  using Stored = T;
  using Computed = T;
  static T widen(T value) { return value; }
  static T narrow(T value) { return value; }
};
struct Half {
  using Stored = std::uint16_t;
  using Computed = float;
  static float widen(std::uint16_t value) { return codec::widen_f16(value); }
  static std::uint16_t narrow(float value) { return codec::narrow_f16(value); }
};
struct Brain {
  using Stored = std::uint16_t;
  using Computed = float;
  static float widen(std::uint16_t value) { return codec::widen_bf16(value); }
  static std::uint16_t narrow(float value) { return codec::narrow_bf16(value); }
};

template <typename Format>
void reduce(const ReduceArguments& a) {
  using Stored = typename Format::Stored;
  using Computed = typename Format::Computed;
  Stored stored[tile];
  Computed sum[tile];
  const auto scale = static_cast<Computed>(a.scale);
  for (std::size_t at = a.begin; at < a.end; at += tile) {
    const std::size_t size = std::min(tile, a.end - at);
    for (std::size_t k = 0; k < a.count; ++k) {
      const auto weight = a.weights != nullptr ? static_cast<Computed>(a.weights[k]) : Computed(1);
      std::memcpy(stored, a.inputs[k] + at * sizeof(Stored), size * sizeof(Stored));
      if (k == 0)
        for (std::size_t i = 0; i < size; ++i) sum[i] = weight * Format::widen(stored[i]);
      else
        for (std::size_t i = 0; i < size; ++i) sum[i] += weight * Format::widen(stored[i]);
    }
    for (std::size_t i = 0; i < size; ++i) stored[i] = Format::narrow(scale * sum[i]);
    std::memcpy(a.out + at * sizeof(Stored), stored, size * sizeof(Stored));
  }
}

}  // namespace

const ReduceKernels& portable_reduce_kernels() {
  static constexpr ReduceKernels kernels{"portable", reduce<Plain<float>>, reduce<Plain<double>>,
                                         reduce<Half>, reduce<Brain>};
  return kernels;
}

}  // namespace riffle::collective
