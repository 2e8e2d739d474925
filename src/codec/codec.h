// What f32 values are rounded to while they travel, and what that loses.
//
//   bf16, f16  2 bytes a value, rounded to nearest even
//   int8       a scale for each block of 256 values, then a byte for each: value = scale * byte.
//   The
//              scale is the block's largest magnitude over 127, rounded up to 16 bits, so that
//              products are exact: what was decoded is encoded to the same bytes again, and all who
//              pass a value on hold the same bits.
//
// Nothing that is not finite is kept as lost. In bf16 and f16 it is passed on as it is (f16 makes
// infinities of what is beyond 65504); in int8 it makes its whole block NaN, so that who looks for
// it finds it.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "riffle/program.h"

namespace riffle::codec {

constexpr std::size_t kBlock = 256;

// Of `count` values.
std::size_t encoded_bytes(Wire wire, std::size_t count);

// Where what rounding takes from values is kept: lost += factor * (value - what it became).
struct Lost {
  float* to = nullptr;  // nobody keeps it
  double factor = 1;
};

// out <- the values; the values <- what decode() will make of it. No alignment is needed of `out`.
void encode(Wire wire, float* values, std::size_t count, std::byte* out, const Lost& lost = {});
void decode(Wire wire, const std::byte* from, std::size_t count, float* out);
// As encode, without sending it.
void round(Wire wire, float* values, std::size_t count, const Lost& lost = {});

// The largest error of one rounding: of bf16 and f16 as a share of the value (f16: above its
// smallest normal number, 6.1e-5), of int8 as a share of the largest value in the block.
double error_bound(Wire wire);

// The instruction sets this CPU has, best first, and the same by a named one of them: for tests and
// benchmarks. All give the same bits.
std::vector<std::string_view> variants();
void encode_by(std::string_view variant, Wire wire, float* values, std::size_t count,
               std::byte* out, const Lost& lost = {});
void decode_by(std::string_view variant, Wire wire, const std::byte* from, std::size_t count,
               float* out);

}  // namespace riffle::codec
