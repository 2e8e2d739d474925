#include "runtime/engine_memory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "codec/half.h"
#include "collective/reduce.h"
#include "riffle/error.h"

namespace riffle::runtime {
namespace {

// Eight sums side by side, so that the compiler may use vectors.
template <typename T, typename Widen>
double typed_square_sum(const std::byte* data, std::size_t count, const Widen& widen) {
  std::array<double, 8> sums{};
  const auto square = [&](std::size_t i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    const auto wide = static_cast<double>(widen(value));
    return wide * wide;
  };
  std::size_t i = 0;
  for (; i + sums.size() <= count; i += sums.size())
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += square(i + k);
  for (; i < count; ++i) sums[0] += square(i);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

std::size_t bytes_of(const TensorView& view) {
  return view.count * static_cast<std::size_t>(size_of(view.dtype).count);
}

TensorView part_of(const TensorView& of, std::size_t first, std::size_t count) {
  return {of.data + first * static_cast<std::size_t>(size_of(of.dtype).count), count, of.dtype};
}

double value_at(const TensorView& view, std::size_t index) {
  const auto read = [&]<typename T>(T value) {
    std::memcpy(&value, view.data + index * sizeof(T), sizeof(T));
    return value;
  };
  switch (view.dtype) {
    case DType::f32:
      return read(float{});
    case DType::f64:
      return read(double{});
    case DType::f16:
      return codec::widen_f16(read(std::uint16_t{}));
    default:  // bf16; models have no integers
      break;
  }
  return codec::widen_bf16(read(std::uint16_t{}));
}

void set_value(const TensorView& view, std::size_t index, double value) {
  const auto write = [&]<typename T>(T typed) {
    std::memcpy(view.data + index * sizeof(T), &typed, sizeof(T));
  };
  switch (view.dtype) {
    case DType::f32:
      return write(static_cast<float>(value));
    case DType::f64:
      return write(value);
    case DType::f16:
      return write(codec::narrow_f16(static_cast<float>(value)));
    default:
      return write(codec::narrow_bf16(static_cast<float>(value)));
  }
}

Block EngineMemory::allocate(std::size_t bytes) {
  auto buffer = std::make_shared<Buffer>(engine_.allocate(bytes));
  const std::span<std::byte> memory = buffer->bytes();
  return {memory, std::move(buffer)};
}

void EngineMemory::copy(TensorView to, TensorView from) {
  RIFFLE_CHECK_EQ(bytes_of(to), bytes_of(from));
  std::memcpy(to.data, from.data, bytes_of(from));
}

void EngineMemory::fill(TensorView x, double value) {
  if (value == 0) {
    std::memset(x.data, 0, bytes_of(x));
    return;
  }
  for (std::size_t i = 0; i < x.count; ++i) set_value(x, i, value);
}

void EngineMemory::combine(TensorView out, std::span<const TensorView> inputs,
                           std::span<const double> factors) {
  if (inputs.size() == 1 && inputs[0].data == out.data)
    return collective::scale_in_place(out.data, factors[0], out.count, out.dtype);
  std::array<const std::byte*, 4> data{};
  RIFFLE_CHECK(inputs.size() <= data.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    RIFFLE_CHECK_EQ(inputs[i].count, out.count);
    data[i] = inputs[i].data;
  }
  collective::reduce_into(out.data, std::span(data).first(inputs.size()), factors, 1, out.count,
                          out.dtype);
}

void EngineMemory::correct_statistics(TensorView x, TensorView mean, TensorView snapshot) {
  for (std::size_t i = 0; i < x.count; ++i) {
    const double local = value_at(x, i);
    const double agreed = value_at(mean, i);
    const double before = value_at(snapshot, i);
    double value = local + (agreed - before);
    if (value <= 0 && local > 0 && agreed > 0 && before > 0) value = std::min(local, agreed);
    set_value(x, i, value);
  }
}

double EngineMemory::square_sum(TensorView x) {
  const auto same = [](auto value) { return value; };
  switch (x.dtype) {
    case DType::f32:
      return typed_square_sum<float>(x.data, x.count, same);
    case DType::f64:
      return typed_square_sum<double>(x.data, x.count, same);
    case DType::f16:
      return typed_square_sum<std::uint16_t>(x.data, x.count, codec::widen_f16);
    default:  // bf16; models have no integers
      break;
  }
  return typed_square_sum<std::uint16_t>(x.data, x.count, codec::widen_bf16);
}

bool EngineMemory::is_zero(TensorView x) {
  for (std::size_t i = 0; i < x.count; ++i)
    if (value_at(x, i) != 0) return false;
  return true;
}

void EngineMemory::read(std::span<std::byte> to, TensorView from) {
  RIFFLE_CHECK_EQ(to.size(), bytes_of(from));
  std::memcpy(to.data(), from.data, to.size());
}

void EngineMemory::write(TensorView to, std::span<const std::byte> from) {
  RIFFLE_CHECK_EQ(from.size(), bytes_of(to));
  std::memcpy(to.data, from.data(), from.size());
}

}  // namespace riffle::runtime
