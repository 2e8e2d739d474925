// Reductions other than weighted sums: any operation on any type it is defined for.
#pragma once

#include "collective/reduce_kernels.h"
#include "riffle/collective.h"

namespace riffle::collective {

// Does not look at weights and scale. UsageError where the type has no such operation.
ReduceKernel combine_kernel_for(Reduction reduction, DType dtype);

}  // namespace riffle::collective
