// Reductions with AVX2 and F16C. Four registers of partial sums at a time; what is left over at the
// end goes to the portable kernel. This file is compiled with -mavx2 -mf16c.
#include <immintrin.h>

#include "collective/reduce_kernels.h"

namespace riffle::collective {
namespace {

struct F32 {
  static constexpr std::size_t width = 8;
  static constexpr std::size_t bytes = 4;
  using Register = __m256;
  static __m256 all(double value) { return _mm256_set1_ps(static_cast<float>(value)); }
  static __m256 add(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
  static __m256 multiply(__m256 a, __m256 b) { return _mm256_mul_ps(a, b); }
  static __m256 load(const std::byte* at) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(at));
  }
  static void store(std::byte* at, __m256 value) {
    _mm256_storeu_ps(reinterpret_cast<float*>(at), value);
  }
};

struct F64 {
  static constexpr std::size_t width = 4;
  static constexpr std::size_t bytes = 8;
  using Register = __m256d;
  static __m256d all(double value) { return _mm256_set1_pd(value); }
  static __m256d add(__m256d a, __m256d b) { return _mm256_add_pd(a, b); }
  static __m256d multiply(__m256d a, __m256d b) { return _mm256_mul_pd(a, b); }
  static __m256d load(const std::byte* at) {
    return _mm256_loadu_pd(reinterpret_cast<const double*>(at));
  }
  static void store(std::byte* at, __m256d value) {
    _mm256_storeu_pd(reinterpret_cast<double*>(at), value);
  }
};

struct F16 : F32 {
  static constexpr std::size_t bytes = 2;
  static __m256 load(const std::byte* at) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
  static void store(std::byte* at, __m256 value) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at),
                     _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
};

struct BF16 : F32 {
  static constexpr std::size_t bytes = 2;
  static __m256 load(const std::byte* at) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
  static void store(std::byte* at, __m256 value) {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i high = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_srli_epi32(
        _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
    const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m256i chosen = _mm256_blendv_epi8(rounded, quiet, is_nan);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(at),
        _mm_packus_epi32(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256(chosen, 1)));
  }
};

template <typename Format, bool weighted>
std::size_t reduce_whole_registers(const ReduceArguments& a) {
  using Register = typename Format::Register;
  constexpr std::size_t unroll = 4;
  constexpr std::size_t stride = Format::width * Format::bytes;
  const Register scale = Format::all(a.scale);
  std::size_t at = a.begin;
  for (; a.end - at >= unroll * Format::width; at += unroll * Format::width) {
    const std::size_t offset = at * Format::bytes;
    Register sum[unroll];
    for (std::size_t j = 0; j < unroll; ++j)
      sum[j] = Format::load(a.inputs[0] + offset + j * stride);
    if constexpr (weighted)
      for (std::size_t j = 0; j < unroll; ++j)
        sum[j] = Format::multiply(Format::all(a.weights[0]), sum[j]);
    for (std::size_t k = 1; k < a.count; ++k)
      for (std::size_t j = 0; j < unroll; ++j) {
        Register value = Format::load(a.inputs[k] + offset + j * stride);
        if constexpr (weighted) value = Format::multiply(Format::all(a.weights[k]), value);
        sum[j] = Format::add(sum[j], value);
      }
    for (std::size_t j = 0; j < unroll; ++j)
      Format::store(a.out + offset + j * stride, Format::multiply(scale, sum[j]));
  }
  return at;
}

template <typename Format>
std::size_t reduce_front(const ReduceArguments& a) {
  return a.weights != nullptr ? reduce_whole_registers<Format, true>(a)
                              : reduce_whole_registers<Format, false>(a);
}

template <typename Format, ReduceKernel ReduceKernels::* rest>
void reduce(const ReduceArguments& a) {
  ReduceArguments left = a;
  left.begin = reduce_front<Format>(a);
  if (left.begin < left.end) (portable_reduce_kernels().*rest)(left);
}

}  // namespace

const ReduceKernels* avx2_reduce_kernels() {
  static constexpr ReduceKernels kernels{
      "avx2", reduce<F32, &ReduceKernels::f32>, reduce<F64, &ReduceKernels::f64>,
      reduce<F16, &ReduceKernels::f16>, reduce<BF16, &ReduceKernels::bf16>};
  const bool available = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  return available ? &kernels : nullptr;
}

}  // namespace riffle::collective
