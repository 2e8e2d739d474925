// Sums of vectors at the speed of memory, by the best instruction set the CPU has.
//
// out[i] = scale * (w0*in0[i] + w1*in1[i] + ...), added from left to right. f32 and f64 compute in
// their own type; f16 and bf16 compute in f32 and round to nearest even once, at the end. Products
// and sums are rounded one by one (no fused multiply-add anywhere), so every instruction set gives
// the same bits; only the payload of a NaN is not defined.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "riffle/collective.h"

namespace riffle::collective {

// At least one input. Without weights they are all 1. `out` may be one of the inputs, but not
// overlap one in part. No alignment is needed. Weights and scale are rounded to the type that
// computes.
void reduce_into(std::byte* out, std::span<const std::byte* const> inputs,
                 std::span<const double> weights_or_empty, double scale, std::size_t elements,
                 DType dtype);

struct Combination {
  Reduction reduction = Reduction::sum;
  std::span<const double> weights = {};  // of sums and means of floating point
  double scale = 1;                      // alike
};
// Any reduction of any type: sums and means of floating point as above; else out[i] = in0[i] op
// in1[i] op ..., from left to right, sums and products of integers modulo their size, 16-bit values
// in f32, rounded once; a NaN wins in min and max. UsageError for what a type has not.
void combine_into(std::byte* out, std::span<const std::byte* const> inputs, const Combination& how,
                  std::size_t elements, DType dtype);

// values *= scale, in place.
void scale_in_place(std::byte* values, double scale, std::size_t elements, DType dtype);

// The instruction sets this CPU has, best first: "avx2", "portable".
std::vector<std::string_view> reduce_variants();
// reduce_into by a named one of them, for tests and benchmarks.
void reduce_into_by(std::string_view variant, std::byte* out,
                    std::span<const std::byte* const> inputs,
                    std::span<const double> weights_or_empty, double scale, std::size_t elements,
                    DType dtype);

}  // namespace riffle::collective
