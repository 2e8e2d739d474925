#include "converge/kernels.h"

namespace riffle::convergence {

const Kernels* avx2_kernels() {
  return nullptr;
}

}  // namespace riffle::convergence
