#include "collective/copy.h"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace riffle::collective {

#if defined(__x86_64__)

namespace {

__attribute__((target("avx"))) void stream_lines(std::byte* to, const std::byte* from,
                                                 std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 64) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at + 32));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at), low);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at + 32), high);
  }
}

}  // namespace

void copy_around_cache(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t ragged = (64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64;
  if (bytes < ragged + 64 || !__builtin_cpu_supports("avx")) {
    std::memcpy(to, from, bytes);
    return;
  }
  if (ragged > 0) std::memcpy(to, from, ragged);
  const std::size_t lines = (bytes - ragged) / 64 * 64;
  stream_lines(to + ragged, from + ragged, lines);
  const std::size_t rest = bytes - ragged - lines;
  if (rest > 0) std::memcpy(to + ragged + lines, from + ragged + lines, rest);
  _mm_sfence();
}

#else

void copy_around_cache(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

#endif

}  // namespace riffle::collective
