// What a file of kernels for one instruction set offers to codec.cpp. Such a file is compiled with
// flags of its own, so it must not instantiate inline code that others share: raw pointers only.
#pragma once

#include <cstddef>

namespace riffle::codec {

// One block of at most kBlock values.
struct Kernels {
  const char* name;
  using Encode = void (*)(float* values, std::size_t count, std::byte* out, float* lost_or_null,
                          float factor);
  using Decode = void (*)(const std::byte* from, std::size_t count, float* out);
  Encode encode_bf16;
  Encode encode_f16;
  Encode encode_int8;
  Decode decode_bf16;
  Decode decode_f16;
  Decode decode_int8;
};

// Plain C++ that the compiler vectorizes for the baseline CPU.
const Kernels& portable_kernels();
// AVX2 and F16C; nullptr when this CPU or this build has none.
const Kernels* avx2_kernels();

}  // namespace riffle::codec
