// This file is compiled with -mavx2.
#include "converge/kernel_loops.h"

namespace riffle::convergence {

const Kernels* avx2_kernels() {
  return __builtin_cpu_supports("avx2") ? &kLoops : nullptr;
}

}  // namespace riffle::convergence
