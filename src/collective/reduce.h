// The arithmetic of the collectives.
#pragma once

#include <cstddef>
#include <span>

#include "riffle/trace.h"

namespace riffle {

// out[e] <- scale * sum over i of weights[i] * inputs[i][e], added in the order of the inputs.
// 16-bit types are added in f32, f32 in f32, f64 in f64, each rounded once at the end. No weights
// means 1 for each. `out` may be one of the inputs; else it overlaps none.
void reduce_into(std::byte* out, std::span<const std::byte* const> inputs,
                 std::span<const double> weights, double scale, std::size_t elements, DType dtype);

}  // namespace riffle
