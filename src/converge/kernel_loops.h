// The loops themselves, compiled once for each instruction set. Tiles are small enough for the
// accumulators to stay in registers; vectors of four doubles are two registers without AVX2.
#pragma once

#include <algorithm>
#include <cstring>

#include "converge/kernels.h"

namespace riffle::convergence {
namespace {

using Vector = double __attribute__((vector_size(32)));
constexpr std::size_t kWidth = 4;

Vector load(const double* from) {
  Vector value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void store(double* to, Vector value) {
  std::memcpy(to, &value, sizeof value);
}

// kRows rows and kVectors vectors of columns of C.
template <std::size_t kRows, std::size_t kVectors>
void tile(std::size_t n, std::size_t k, Factor a, const double* b, double* c) {
  Vector sums[kRows][kVectors] = {};
  for (std::size_t p = 0; p < k; ++p) {
    Vector right[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) right[v] = load(b + p * n + v * kWidth);
    for (std::size_t i = 0; i < kRows; ++i) {
      const double left = a.data[i * a.row_stride + p * a.column_stride];
      for (std::size_t v = 0; v < kVectors; ++v) sums[i][v] += left * right[v];
    }
  }
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t v = 0; v < kVectors; ++v) store(c + i * n + v * kWidth, sums[i][v]);
}

// What is left beside the tiles.
void single(std::size_t n, std::size_t k, Factor a, const double* b, double* c) {
  double sum = 0;
  for (std::size_t p = 0; p < k; ++p) sum += a.data[p * a.column_stride] * b[p * n];
  *c = sum;
}

template <std::size_t kRows>
void rows(std::size_t n, std::size_t k, Factor a, const double* b, double* c) {
  std::size_t j = 0;
  for (; j + 2 * kWidth <= n; j += 2 * kWidth) tile<kRows, 2>(n, k, a, b + j, c + j);
  for (; j + kWidth <= n; j += kWidth) tile<kRows, 1>(n, k, a, b + j, c + j);
  for (; j < n; ++j)
    for (std::size_t i = 0; i < kRows; ++i)
      single(n, k, {a.data + i * a.row_stride, a.row_stride, a.column_stride}, b + j,
             c + i * n + j);
}

void multiply(std::size_t m, std::size_t n, std::size_t k, Factor a, const double* b, double* c) {
  constexpr std::size_t kRows = 6;
  std::size_t i = 0;
  const auto from = [&] {
    return Factor{a.data + i * a.row_stride, a.row_stride, a.column_stride};
  };
  for (; i + kRows <= m; i += kRows) rows<kRows>(n, k, from(), b, c + i * n);
  for (; i + 2 <= m; i += 2) rows<2>(n, k, from(), b, c + i * n);
  for (; i < m; ++i) rows<1>(n, k, from(), b, c + i * n);
}

void add(double* __restrict y, double a, const double* __restrict x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] += a * x[i];
}

void sgd(double* __restrict x, double* __restrict velocity, const double* __restrict gradient,
         std::size_t n, SgdRates rates) {
  for (std::size_t i = 0; i < n; ++i) {
    velocity[i] = rates.momentum * velocity[i] + (gradient[i] + rates.weight_decay * x[i]);
    x[i] -= rates.learning_rate * velocity[i];
  }
}

constexpr Kernels kLoops{multiply, add, sgd};

}  // namespace
}  // namespace riffle::convergence
