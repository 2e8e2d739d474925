// A tile of the result is kept in the first-level cache while one input after the other is taken
// in, in loops the compiler vectorizes.
#include "collective/combine.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "codec/half.h"
#include "riffle/error.h"

namespace riffle::collective {
namespace {

constexpr std::size_t tile = 512;

// How a type is stored, and in what it is computed.
template <typename T>
struct Plain {
  using Stored = T;
  using Computed = T;
  static T widen(T value) { return value; }
  static T narrow(T value) { return value; }
};
template <float (*to)(std::uint16_t), std::uint16_t (*from)(float)>
struct Short {
  using Stored = std::uint16_t;
  using Computed = float;
  static float widen(std::uint16_t value) { return to(value); }
  static std::uint16_t narrow(float value) { return from(value); }
};
float from_f16(std::uint16_t value) {
  return codec::widen_f16(value);
}
float from_bf16(std::uint16_t value) {
  return codec::widen_bf16(value);
}
std::uint16_t to_f16(float value) {
  return codec::narrow_f16(value);
}
std::uint16_t to_bf16(float value) {
  return codec::narrow_bf16(value);
}

// Small integers are promoted to int, whose product may not overflow.
template <typename T>
using Wrapping =
    std::conditional_t<std::is_integral_v<T>, std::conditional_t<sizeof(T) < 4, unsigned, T>, T>;
struct Add {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
  }
};
struct Multiply {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
  }
};
struct Least {
  template <typename T>
  static T of(T a, T b) {
    return b < a || b != b ? b : a;
  }
};
struct Most {
  template <typename T>
  static T of(T a, T b) {
    return b > a || b != b ? b : a;
  }
};
struct And {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

template <typename Format, typename Operation>
void combine(const ReduceArguments& a) {
  using Stored = typename Format::Stored;
  using Computed = typename Format::Computed;
  Stored stored[tile];
  Computed result[tile];
  for (std::size_t at = a.begin; at < a.end; at += tile) {
    const std::size_t size = std::min(tile, a.end - at);
    for (std::size_t k = 0; k < a.count; ++k) {
      std::memcpy(stored, a.inputs[k] + at * sizeof(Stored), size * sizeof(Stored));
      if (k == 0)
        for (std::size_t i = 0; i < size; ++i) result[i] = Format::widen(stored[i]);
      else
        for (std::size_t i = 0; i < size; ++i)
          result[i] = Operation::of(result[i], Format::widen(stored[i]));
    }
    for (std::size_t i = 0; i < size; ++i) stored[i] = Format::narrow(result[i]);
    std::memcpy(a.out + at * sizeof(Stored), stored, size * sizeof(Stored));
  }
}

// `Signed` keeps its order, `Bits` wraps.
template <typename Signed, typename Bits>
ReduceKernel integer_kernel(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return combine<Plain<Bits>, Add>;
    case Reduction::product:
      return combine<Plain<Bits>, Multiply>;
    case Reduction::min:
      return combine<Plain<Signed>, Least>;
    case Reduction::max:
      return combine<Plain<Signed>, Most>;
    case Reduction::bit_and:
      return combine<Plain<Bits>, And>;
    case Reduction::bit_or:
      return combine<Plain<Bits>, Or>;
    case Reduction::bit_xor:
      return combine<Plain<Bits>, Xor>;
    case Reduction::mean:
      break;
  }
  return nullptr;
}

template <typename Format>
ReduceKernel floating_kernel(Reduction reduction) {
  switch (reduction) {
    case Reduction::product:
      return combine<Format, Multiply>;
    case Reduction::min:
      return combine<Format, Least>;
    case Reduction::max:
      return combine<Format, Most>;
    default:
      return nullptr;
  }
}

ReduceKernel find(Reduction reduction, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return floating_kernel<Plain<float>>(reduction);
    case DType::f64:
      return floating_kernel<Plain<double>>(reduction);
    case DType::f16:
      return floating_kernel<Short<from_f16, to_f16>>(reduction);
    case DType::bf16:
      return floating_kernel<Short<from_bf16, to_bf16>>(reduction);
    case DType::u8:
      return integer_kernel<std::uint8_t, std::uint8_t>(reduction);
    case DType::i8:
      return integer_kernel<std::int8_t, std::uint8_t>(reduction);
    case DType::i16:
      return integer_kernel<std::int16_t, std::uint16_t>(reduction);
    case DType::i32:
      return integer_kernel<std::int32_t, std::uint32_t>(reduction);
    case DType::i64:
      return integer_kernel<std::int64_t, std::uint64_t>(reduction);
  }
  return nullptr;
}

}  // namespace

ReduceKernel combine_kernel_for(Reduction reduction, DType dtype) {
  const ReduceKernel kernel = find(reduction, dtype);
  if (kernel == nullptr) usage_error("there is no {} of {}", name_of(reduction), name_of(dtype));
  return kernel;
}

}  // namespace riffle::collective
