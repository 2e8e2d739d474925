// Stands in for reduce_avx2.cpp on CPUs of another family.
#include "collective/reduce_kernels.h"

namespace riffle::collective {

const ReduceKernels* avx2_reduce_kernels() {
  return nullptr;
}

}  // namespace riffle::collective
