// Compiled with -mavx2 -mf16c.
#include "codec/kernel_loops.h"

namespace riffle::codec {

const Kernels* avx2_kernels() {
  static constexpr Kernels kernels = kernels_named("avx2");
  const bool available = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  return available ? &kernels : nullptr;
}

}  // namespace riffle::codec
