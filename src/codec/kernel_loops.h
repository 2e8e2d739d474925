// The loops themselves, compiled once for each instruction set; all of it has no name outside.
#pragma once

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "codec/half.h"
#include "codec/kernels.h"

namespace riffle::codec {
namespace {

using Bits = std::uint32_t;
// Anywhere in memory. Never by `auto`, which would forget that.
using LooseHalf = std::uint16_t __attribute__((aligned(1), may_alias));
using LooseFloat = float __attribute__((aligned(1), may_alias));

constexpr Bits kMagnitude = 0x7fffffffu;
constexpr Bits kInfinity = 0x7f800000u;

Bits bits_of(float value) {
  return __builtin_bit_cast(Bits, value);
}
float float_of(Bits bits) {
  return __builtin_bit_cast(float, bits);
}

// What was lost, where that is a number.
float finite(float value) {
  return (bits_of(value) & kInfinity) == kInfinity ? 0.0f : value;
}

void keep(const float* __restrict before, const float* __restrict after, std::size_t count,
          float* __restrict lost, float factor) {
  for (std::size_t i = 0; i < count; ++i) lost[i] += factor * finite(before[i] - after[i]);
}

// ---- 16 bits

void decode_bf16(const std::byte* from, std::size_t count, float* __restrict out) {
  const LooseHalf* __restrict halves = reinterpret_cast<const LooseHalf*>(from);
  for (std::size_t i = 0; i < count; ++i) out[i] = widen_bf16(halves[i]);
}

void put_bf16(const float* __restrict values, std::size_t count, std::byte* out) {
  LooseHalf* __restrict halves = reinterpret_cast<LooseHalf*>(out);
  for (std::size_t i = 0; i < count; ++i) halves[i] = narrow_bf16(values[i]);
}

void decode_f16(const std::byte* from, std::size_t count, float* __restrict out) {
  const LooseHalf* __restrict halves = reinterpret_cast<const LooseHalf*>(from);
  std::size_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(
        out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves + i))));
#endif
  for (; i < count; ++i) out[i] = widen_f16(halves[i]);
}

void put_f16(const float* __restrict values, std::size_t count, std::byte* out) {
  LooseHalf* __restrict halves = reinterpret_cast<LooseHalf*>(out);
  std::size_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(halves + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(values + i),
                                     _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#endif
  for (; i < count; ++i) halves[i] = narrow_f16(values[i]);
}

// ---- 8 bits

// Smaller values than this count as none.
constexpr float kLeast = 0x1p-100f;
// Added and taken off again it rounds to whole numbers, to even ones at a half.
constexpr float kRounder = 12582912.0f;

// As integers magnitudes compare as they do as numbers, and what is not finite is the largest.
float scale_of(const float* values, std::size_t count) {
  int largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const int magnitude = static_cast<int>(bits_of(values[i]) & kMagnitude);
    largest = magnitude > largest ? magnitude : largest;
  }
  if (largest >= static_cast<int>(kInfinity)) return __builtin_nanf("");
  const float magnitude = float_of(static_cast<Bits>(largest));
  if (magnitude < kLeast) return 0;
  return float_of((bits_of(magnitude / 127.0f) + 0xffu) & ~0xffu);
}

void decode_int8(const std::byte* from, std::size_t count, float* __restrict out) {
  const float scale = *reinterpret_cast<const LooseFloat*>(from);
  const auto* __restrict bytes = reinterpret_cast<const signed char*>(from + sizeof(float));
  for (std::size_t i = 0; i < count; ++i) out[i] = scale * static_cast<float>(bytes[i]);
}

void put_int8(const float* __restrict values, std::size_t count, std::byte* out) {
  const float scale = scale_of(values, count);
  *reinterpret_cast<LooseFloat*>(out) = scale;
  auto* __restrict bytes = reinterpret_cast<signed char*>(out + sizeof(float));
  if (!(scale > 0)) {
    for (std::size_t i = 0; i < count; ++i) bytes[i] = 0;
    return;
  }
  const float inverse = 1.0f / scale;
  for (std::size_t i = 0; i < count; ++i) {
    const float whole = values[i] * inverse + kRounder;
    bytes[i] = static_cast<signed char>(bits_of(whole) & 0xffu);
  }
}

// ---- one way and back

template <void (*put)(const float*, std::size_t, std::byte*),
          void (*widen)(const std::byte*, std::size_t, float*)>
void encode(float* values, std::size_t count, std::byte* out, float* lost, float factor) {
  float before[256];
  __builtin_memcpy(before, values, count * sizeof(float));
  put(before, count, out);
  widen(out, count, values);
  if (lost != nullptr) keep(before, values, count, lost, factor);
}

constexpr Kernels kernels_named(const char* name) {
  return {name,
          encode<put_bf16, decode_bf16>,
          encode<put_f16, decode_f16>,
          encode<put_int8, decode_int8>,
          decode_bf16,
          decode_f16,
          decode_int8};
}

}  // namespace
}  // namespace riffle::codec
