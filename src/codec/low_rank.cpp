#include "codec/low_rank.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "riffle/random.h"

namespace riffle::codec {
namespace {

constexpr std::uint64_t kSeed = 1905'13727;

// Sums side by side, so that the compiler may use vectors.
template <typename T>
T dot(const T* a, const T* b, std::size_t count) {
  std::array<T, 16> sums{};
  std::size_t i = 0;
  for (; i + sums.size() <= count; i += sums.size())
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += a[i + k] * b[i + k];
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  return std::accumulate(sums.begin(), sums.end(), T{});
}

template <typename T>
void add(T* __restrict to, T factor, const T* __restrict values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] += factor * values[i];
}

// Takes off what the columns before number `which` make up of it; twice, since after the first time
// rounding is left over of a column that is nearly theirs. Gives the length that remains.
template <typename T>
T remove_others(T* columns, std::size_t length, std::size_t which) {
  T* column = columns + which * length;
  for (int time = 0; time < 2; ++time)
    for (std::size_t i = 0; i < which; ++i) {
      const T* other = columns + i * length;
      add(column, -dot(column, other, length), other, length);
    }
  return std::sqrt(dot(column, column, length));
}

}  // namespace

template <typename T>
void orthonormalize(T* columns, std::size_t length, std::size_t count) {
  const T rounding = 128 * std::numeric_limits<T>::epsilon();
  for (std::size_t i = 0; i < count; ++i) {
    T* column = columns + i * length;
    const T before = std::sqrt(dot(column, column, length));
    T after = remove_others(columns, length, i);
    if (!(after > rounding * before) || !std::isfinite(after)) {
      for (std::size_t k = 0; k < length; ++k)
        column[k] = static_cast<T>(std::cos(static_cast<double>((i + 1) * (k + 1))));
      after = remove_others(columns, length, i);
    }
    for (std::size_t k = 0; k < length; ++k) column[k] /= after;
  }
}

template <typename T>
void draw_right(const Factors<T>& factors, std::uint64_t stream) {
  Random random(kSeed, stream);
  for (std::size_t i = 0; i < factors.rank * factors.columns; ++i)
    factors.right[i] = static_cast<T>(random.normal());
}

template <typename T>
void take_left(const Factors<T>& factors, const T* lost) {
  add(factors.matrix, T{1}, lost, factors.rows * factors.columns);
  orthonormalize(factors.right, factors.columns, factors.rank);
  for (std::size_t i = 0; i < factors.rows; ++i)
    for (std::size_t k = 0; k < factors.rank; ++k)
      factors.left[k * factors.rows + i] =
          dot(factors.matrix + i * factors.columns, factors.right + k * factors.columns,
              factors.columns);
}

template <typename T>
void take_right(const Factors<T>& factors) {
  orthonormalize(factors.left, factors.rows, factors.rank);
  std::fill_n(factors.right, factors.rank * factors.columns, T{});
  for (std::size_t i = 0; i < factors.rows; ++i)
    for (std::size_t k = 0; k < factors.rank; ++k)
      add(factors.right + k * factors.columns, factors.left[k * factors.rows + i],
          factors.matrix + i * factors.columns, factors.columns);
}

template <typename T>
void put_back(const Factors<T>& factors, T* lost) {
  const std::size_t columns = factors.columns;
  for (std::size_t i = 0; i < factors.rows; ++i) {
    T* row = factors.matrix + i * columns;
    T* rest = lost + i * columns;
    std::copy_n(row, columns, rest);
    std::fill_n(row, columns, T{});
    for (std::size_t k = 0; k < factors.rank; ++k)
      add(row, factors.left[k * factors.rows + i], factors.right + k * columns, columns);
    for (std::size_t j = 0; j < columns; ++j) {
      const T missing = rest[j] - row[j];
      rest[j] = std::isfinite(missing) ? missing : T{};
    }
  }
}

#define RIFFLE_INSTANTIATE(T)                                    \
  template void orthonormalize<T>(T*, std::size_t, std::size_t); \
  template void draw_right<T>(const Factors<T>&, std::uint64_t); \
  template void take_left<T>(const Factors<T>&, const T*);       \
  template void take_right<T>(const Factors<T>&);                \
  template void put_back<T>(const Factors<T>&, T*);
RIFFLE_INSTANTIATE(float)
RIFFLE_INSTANTIATE(double)
#undef RIFFLE_INSTANTIATE

}  // namespace riffle::codec
