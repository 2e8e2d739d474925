// Vectors of any dtype, filled and read as doubles.
#pragma once

#include <cstring>
#include <functional>
#include <vector>

#include "codec/half.h"
#include "riffle/collective.h"

namespace riffle::test {

inline std::size_t bytes_of(DType dtype) {
  return static_cast<std::size_t>(size_of(dtype).count);
}

// Relative error of one rounding.
inline double rounding(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 0x1p-24;
    case DType::f64:
      return 0x1p-53;
    case DType::f16:
      return 0x1p-11;
    default:  // bf16; these tests have no integers
      return 0x1p-8;
  }
  return 1;
}

class Values {
 public:
  Values(std::size_t count, DType dtype)
      : dtype_(dtype), count_(count), bytes_(count * bytes_of(dtype) + 64) {}

  [[nodiscard]] TensorView view() { return {data(), count_, dtype_}; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::vector<std::byte> bytes() const {
    return {bytes_.begin(),
            bytes_.begin() + static_cast<std::ptrdiff_t>(count_ * bytes_of(dtype_))};
  }

  [[nodiscard]] double at(std::size_t i) const {
    switch (dtype_) {
      case DType::f32:
        return get<float>(i);
      case DType::f64:
        return get<double>(i);
      case DType::f16:
        return codec::widen_f16(get<std::uint16_t>(i));
      default:  // bf16; these tests have no integers
        return codec::widen_bf16(get<std::uint16_t>(i));
    }
    return 0;
  }
  void set(std::size_t i, double value) {
    switch (dtype_) {
      case DType::f32:
        return put(i, static_cast<float>(value));
      case DType::f64:
        return put(i, value);
      case DType::f16:
        return put(i, codec::narrow_f16(static_cast<float>(value)));
      default:  // bf16; these tests have no integers
        return put(i, codec::narrow_bf16(static_cast<float>(value)));
    }
  }

 private:
  [[nodiscard]] std::byte* data() { return bytes_.data(); }
  template <typename T>
  [[nodiscard]] T get(std::size_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + i * sizeof(T), sizeof(T));
    return value;
  }
  template <typename T>
  void put(std::size_t i, T value) {
    std::memcpy(bytes_.data() + i * sizeof(T), &value, sizeof(T));
  }

  DType dtype_;
  std::size_t count_;
  std::vector<std::byte> bytes_;
};

}  // namespace riffle::test
