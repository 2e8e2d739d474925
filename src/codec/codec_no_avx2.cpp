#include "codec/kernels.h"

namespace riffle::codec {

const Kernels* avx2_kernels() {
  return nullptr;
}

}  // namespace riffle::codec
