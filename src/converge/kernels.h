// The loops that take the time, for the instruction set of the machine. All variants add in the
// same order and fuse nothing, so that they give the same bits.
#pragma once

#include <cstddef>

namespace riffle::convergence {

// A factor of a product, transposed where the strides say so.
struct Factor {
  const double* data;
  std::size_t row_stride;
  std::size_t column_stride;
};

struct SgdRates {
  double learning_rate = 0;
  double momentum = 0;
  double weight_decay = 0;
};

struct Kernels {
  // C = A * B: C has m rows of n, A k columns, B k rows; the rows of B and C are contiguous.
  void (*multiply)(std::size_t m, std::size_t n, std::size_t k, Factor a, const double* b,
                   double* c);
  // y += a * x
  void (*add)(double* y, double a, const double* x, std::size_t n);
  // velocity <- momentum * velocity + gradient + decay * x; x <- x - rate * velocity
  void (*sgd)(double* x, double* velocity, const double* gradient, std::size_t n, SgdRates rates);
};

extern const Kernels portable_kernels;
// nullptr where the machine has no AVX2.
const Kernels* avx2_kernels();
const Kernels& kernels();

}  // namespace riffle::convergence
