// The small helpers of collective.h: who owns which part, names of reductions and of groups.
#include <algorithm>
#include <array>

#include "riffle/collective.h"

namespace riffle {

TensorView tensor_view(std::span<float> values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size(), DType::f32};
}

TensorView tensor_view(std::span<double> values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size(), DType::f64};
}

std::string_view name_of(Reduction reduction) {
  constexpr std::array<std::string_view, 8> names{"sum", "mean",    "product", "min",
                                                  "max", "bit_and", "bit_or",  "bit_xor"};
  return names.at(static_cast<std::size_t>(reduction));
}

Slice slice_of(std::size_t count, DType dtype, int members, int index) {
  const std::size_t line = 64 / static_cast<std::size_t>(size_of(dtype).count);  // in elements
  const std::size_t lines = (count + line - 1) / line;
  const auto n = static_cast<std::size_t>(members);
  const auto begin_of = [&](std::size_t i) {
    return std::min(count, line * (i * (lines / n) + std::min(i, lines % n)));
  };
  const std::size_t begin = begin_of(static_cast<std::size_t>(index));
  return {begin, begin_of(static_cast<std::size_t>(index) + 1) - begin};
}

std::uint64_t hash_of(const Group& group) {
  std::uint64_t hash = 0x9e3779b97f4a7c15ULL;
  for (const Rank rank : group) {
    hash ^= static_cast<std::uint64_t>(rank) + 1;
    hash *= 0xff51afd7ed558ccdULL;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace riffle
