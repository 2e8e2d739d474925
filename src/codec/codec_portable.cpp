#include "codec/kernel_loops.h"

namespace riffle::codec {

const Kernels& portable_kernels() {
  static constexpr Kernels kernels = kernels_named("portable");
  return kernels;
}

}  // namespace riffle::codec
