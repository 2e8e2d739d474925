// 16-bit floats in software, bit for bit as the F16C instructions do it: widening is exact,
// narrowing rounds to nearest even once, a NaN stays a NaN and becomes quiet. Always inlined, so
// that files compiled for one instruction set may use it.
#pragma once

#include <bit>
#include <cstdint>

namespace riffle::codec {

[[gnu::always_inline]] inline float widen_f16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t magnitude = half & 0x7fffu;
  if (magnitude < 0x0400u) {  // zero or denormal: a multiple of 2^-24, exact in a float
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
  if (magnitude < 0x7c00u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  const std::uint32_t quiet = magnitude == 0x7c00u ? 0u : 0x00400000u;
  return std::bit_cast<float>(sign | 0x7f800000u | (magnitude << 13) | quiet);
}

[[gnu::always_inline]] inline std::uint16_t narrow_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x03ffu));
  if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // A float in [0.5, 1) counts in units of 2^-24, as a denormal half does: the addition rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  magnitude += 0x0fffu + ((magnitude >> 13) & 1u);  // may carry into infinity, which is right
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u) >> 13));
}

[[gnu::always_inline]] inline float widen_bf16(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

[[gnu::always_inline]] inline std::uint16_t narrow_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace riffle::codec
