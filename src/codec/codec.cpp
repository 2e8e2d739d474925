#include "codec/codec.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "codec/kernels.h"
#include "riffle/error.h"

namespace riffle::codec {
namespace {

const Kernels& best_kernels() {
  const Kernels* avx2 = avx2_kernels();
  return avx2 != nullptr ? *avx2 : portable_kernels();
}

const Kernels& kernels_named(std::string_view variant) {
  if (variant == best_kernels().name) return best_kernels();
  if (variant == portable_kernels().name) return portable_kernels();
  usage_error("no codec '{}' on this CPU; there are: {}", variant, fmt::join(variants(), ", "));
}

Kernels::Encode encoder(const Kernels& kernels, Wire wire) {
  if (wire == Wire::bf16) return kernels.encode_bf16;
  return wire == Wire::f16 ? kernels.encode_f16 : kernels.encode_int8;
}

Kernels::Decode decoder(const Kernels& kernels, Wire wire) {
  if (wire == Wire::bf16) return kernels.decode_bf16;
  return wire == Wire::f16 ? kernels.decode_f16 : kernels.decode_int8;
}

// Calls visit(first value, how many), block by block.
template <typename Visit>
void by_block(std::size_t count, const Visit& visit) {
  for (std::size_t at = 0; at < count; at += kBlock) visit(at, std::min(kBlock, count - at));
}

void encode_with(const Kernels& kernels, Wire wire, float* values, std::size_t count,
                 std::byte* out, const Lost& lost) {
  if (wire == Wire::f32) {
    if (count > 0) std::memcpy(out, values, count * sizeof(float));
    return;
  }
  const auto encode_block = encoder(kernels, wire);
  by_block(count, [&](std::size_t at, std::size_t some) {
    encode_block(values + at, some, out, lost.to == nullptr ? nullptr : lost.to + at,
                 static_cast<float>(lost.factor));
    out += encoded_bytes(wire, some);
  });
}

void decode_with(const Kernels& kernels, Wire wire, const std::byte* from, std::size_t count,
                 float* out) {
  if (wire == Wire::f32) {
    if (count > 0) std::memcpy(out, from, count * sizeof(float));
    return;
  }
  const auto decode_block = decoder(kernels, wire);
  by_block(count, [&](std::size_t at, std::size_t some) {
    decode_block(from, some, out + at);
    from += encoded_bytes(wire, some);
  });
}

}  // namespace

std::size_t encoded_bytes(Wire wire, std::size_t count) {
  switch (wire) {
    case Wire::bf16:
    case Wire::f16:
      return 2 * count;
    case Wire::int8:
      return count + sizeof(float) * ((count + kBlock - 1) / kBlock);
    case Wire::f32:
      break;
  }
  return sizeof(float) * count;
}

void encode(Wire wire, float* values, std::size_t count, std::byte* out, const Lost& lost) {
  encode_with(best_kernels(), wire, values, count, out, lost);
}

void decode(Wire wire, const std::byte* from, std::size_t count, float* out) {
  decode_with(best_kernels(), wire, from, count, out);
}

void round(Wire wire, float* values, std::size_t count, const Lost& lost) {
  if (wire == Wire::f32) return;
  std::array<std::byte, sizeof(float) * (kBlock + 1)> unsent;
  by_block(count, [&](std::size_t at, std::size_t some) {
    encode(wire, values + at, some, unsent.data(),
           {lost.to == nullptr ? nullptr : lost.to + at, lost.factor});
  });
}

double error_bound(Wire wire) {
  switch (wire) {
    case Wire::bf16:
      return 0x1p-8;
    case Wire::f16:
      return 0x1p-11;
    case Wire::int8:
      return 0.5 / 127 * (1 + 0x1p-15);
    case Wire::f32:
      break;
  }
  return 0;
}

std::vector<std::string_view> variants() {
  std::vector<std::string_view> names;
  if (const Kernels* avx2 = avx2_kernels()) names.emplace_back(avx2->name);
  names.emplace_back(portable_kernels().name);
  return names;
}

void encode_by(std::string_view variant, Wire wire, float* values, std::size_t count,
               std::byte* out, const Lost& lost) {
  encode_with(kernels_named(variant), wire, values, count, out, lost);
}

void decode_by(std::string_view variant, Wire wire, const std::byte* from, std::size_t count,
               float* out) {
  decode_with(kernels_named(variant), wire, from, count, out);
}

}  // namespace riffle::codec
