// For CPUs of another family.
#include "collective/reduce_kernels.h"

namespace riffle::detail {

const ReduceKernels* avx2_reduce_kernels() {
  return nullptr;
}

}  // namespace riffle::detail
