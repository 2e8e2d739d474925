// What a file of kernels for one instruction set offers to reduce.cpp. Such a file is compiled with
// flags of its own, so it must not instantiate inline code that others share: raw pointers only.
#pragma once

#include <cstddef>

namespace riffle::collective {

struct ReduceArguments {
  std::byte* out;
  const std::byte* const* inputs;
  std::size_t count;      // of inputs, at least 1
  const double* weights;  // nullptr: all 1
  double scale;
  std::size_t begin;  // first element to work on
  std::size_t end;    // one past the last
};

using ReduceKernel = void (*)(const ReduceArguments&);

struct ReduceKernels {
  const char* name;
  ReduceKernel f32;
  ReduceKernel f64;
  ReduceKernel f16;
  ReduceKernel bf16;
};

// Plain C++ that the compiler vectorizes for the baseline CPU.
const ReduceKernels& portable_reduce_kernels();
// AVX2 and F16C; nullptr when this CPU or this build has none.
const ReduceKernels* avx2_reduce_kernels();

}  // namespace riffle::collective
