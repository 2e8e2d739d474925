#include "runtime/layout.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "collective/half.h"
#include "riffle/error.h"

namespace riffle::runtime {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t size_in_bytes(DType dtype) {
  return static_cast<std::size_t>(size_of(dtype).count);
}

std::size_t rounded_up(std::size_t count, DType dtype) {
  const std::size_t unit = kAlignment / size_in_bytes(dtype);
  return (count + unit - 1) / unit * unit;
}

// Every tensor starts on 64 bytes, for the kernels that work on it.
Place append(std::vector<Part>& parts, int bucket, const TensorSpec& tensor, bool statistics) {
  std::size_t index = 0;
  while (index < parts.size() &&
         (parts[index].dtype != tensor.dtype || parts[index].statistics != statistics))
    ++index;
  if (index == parts.size())
    parts.push_back({.dtype = tensor.dtype, .count = 0, .statistics = statistics});
  Part& part = parts[index];
  const Place place{.bucket = bucket,
                    .part = static_cast<int>(index),
                    .offset = part.count,
                    .count = static_cast<std::size_t>(tensor.elements)};
  part.count = rounded_up(part.count + place.count, part.dtype);
  return place;
}

}  // namespace

Layout::Layout(const ModelSpec& model, BucketPlan plan)
    : buckets(std::move(plan)),
      gradient_parts(buckets.size()),
      weight_parts(buckets.size()),
      gradients(model.parameters.size()),
      weights(model.parameters.size()),
      bucket_of(model.parameters.size()) {
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const int id = static_cast<int>(b);
    RIFFLE_CHECK_EQ(buckets[b].id, id);
    for (int p = buckets[b].first; p <= buckets[b].last; ++p) {
      const TensorSpec& parameter = model.parameters.at(p);
      bucket_of[p] = id;
      weights[p] = append(weight_parts[b], id, parameter, false);
      gradients[p] = append(gradient_parts[b], id, parameter, false);
    }
    for (int p = buckets[b].first; p <= buckets[b].last; ++p)
      gradients[p].flag = gradient_parts[b][gradients[p].part].count++;
  }
  const int last = static_cast<int>(buckets.size()) - 1;
  for (const TensorSpec& buffer : model.buffers)
    buffers.push_back(append(weight_parts[last], last, buffer, true));
}

std::size_t bytes_of(const Elements& elements) {
  return elements.count * size_in_bytes(elements.dtype);
}

std::size_t bytes_of(const std::vector<Part>& parts) {
  std::size_t bytes = 0;
  for (const Part& part : parts)
    bytes += rounded_up(part.count, part.dtype) * size_in_bytes(part.dtype);
  return bytes;
}

Flat::Flat(Engine& engine, const std::vector<Part>& parts)
    : memory_(engine.allocate(bytes_of(parts))) {
  std::byte* next = memory_.data();
  for (const Part& part : parts) {
    parts_.push_back({next, part.count, part.dtype});
    next += rounded_up(part.count, part.dtype) * size_in_bytes(part.dtype);
  }
}

Elements Flat::at(const Place& place) const {
  const Elements& part = parts_.at(place.part);
  return {part.data + place.offset * size_in_bytes(part.dtype), place.count, part.dtype};
}

Flat FlatPool::take(Engine& engine, const std::vector<Part>& parts) {
  const auto found = std::ranges::find(free_, parts, &std::pair<std::vector<Part>, Flat>::first);
  if (found == free_.end()) return {engine, parts};
  Flat flat = std::move(found->second);
  free_.erase(found);
  return flat;
}

void FlatPool::give_back(std::vector<Part> parts, Flat flat) {
  if (!flat.empty()) free_.emplace_back(std::move(parts), std::move(flat));
}

double value_at(const Elements& elements, std::size_t index) {
  const auto read = [&]<typename T>(T value) {
    std::memcpy(&value, elements.data + index * sizeof(T), sizeof(T));
    return value;
  };
  switch (elements.dtype) {
    case DType::f32:
      return read(float{});
    case DType::f64:
      return read(double{});
    case DType::f16:
      return collective::widen_f16(read(std::uint16_t{}));
    case DType::bf16:
      break;
  }
  return collective::widen_bf16(read(std::uint16_t{}));
}

void set_value(const Elements& elements, std::size_t index, double value) {
  const auto write = [&]<typename T>(T typed) {
    std::memcpy(elements.data + index * sizeof(T), &typed, sizeof(T));
  };
  switch (elements.dtype) {
    case DType::f32:
      return write(static_cast<float>(value));
    case DType::f64:
      return write(value);
    case DType::f16:
      return write(collective::narrow_f16(static_cast<float>(value)));
    case DType::bf16:
      return write(collective::narrow_bf16(static_cast<float>(value)));
  }
}

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

double square_sum(const Elements& elements) {
  const auto same = [](auto value) { return value; };
  switch (elements.dtype) {
    case DType::f32:
      return typed_square_sum<float>(elements.data, elements.count, same);
    case DType::f64:
      return typed_square_sum<double>(elements.data, elements.count, same);
    case DType::f16:
      return typed_square_sum<std::uint16_t>(elements.data, elements.count, collective::widen_f16);
    case DType::bf16:
      break;
  }
  return typed_square_sum<std::uint16_t>(elements.data, elements.count, collective::widen_bf16);
}

}  // namespace riffle::runtime
