#include "converge/kernel_loops.h"

namespace riffle::convergence {

const Kernels portable_kernels = kLoops;

const Kernels& kernels() {
  static const Kernels* chosen = avx2_kernels();
  return chosen != nullptr ? *chosen : portable_kernels;
}

}  // namespace riffle::convergence
