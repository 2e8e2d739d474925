#include "torch/watch.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "torch/tensors.h"

namespace riffle::adapter {
namespace {

// Without their sign, floats order as the integers that have the same bits.
template <typename Bits>
std::size_t furthest(const std::byte* data, std::size_t count) {
  constexpr std::size_t kBlock = 4096;
  constexpr Bits kValue = std::numeric_limits<Bits>::max() / 2;
  const auto at = [&](std::size_t i) {
    Bits bits;
    std::memcpy(&bits, data + i * sizeof(Bits), sizeof(Bits));
    return static_cast<Bits>(bits & kValue);
  };
  Bits most = 0;
  std::size_t block = 0;
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    Bits here = 0;
    for (std::size_t i = begin; i < std::min(begin + kBlock, count); ++i)
      here = std::max(here, at(i));
    if (here <= most) continue;
    most = here;
    block = begin;
  }
  while (at(block) != most) ++block;
  return block;
}

std::size_t furthest(const at::Tensor& dense) {
  const std::span<const std::byte> bytes = bytes_of(dense);
  const auto count = static_cast<std::size_t>(dense.numel());
  if (dense.element_size() == 2) return furthest<std::uint16_t>(bytes.data(), count);
  if (dense.element_size() == 4) return furthest<std::uint32_t>(bytes.data(), count);
  return furthest<std::uint64_t>(bytes.data(), count);
}

std::uint64_t bits_at(const at::Tensor& dense, std::size_t index) {
  std::uint64_t bits = 0;
  const auto size = static_cast<std::size_t>(dense.element_size());
  std::memcpy(&bits, bytes_of(dense).data() + index * size, size);
  return bits;
}

bool is_looked_into(const at::Tensor& gradient) {
  return gradient.numel() > 0 && is_dense(gradient) && is_float(gradient);
}

}  // namespace

void GradientWatch::mark(const std::vector<at::Tensor>& gradients, bool copies) {
  marks_.clear();
  for (const at::Tensor& gradient : gradients) {
    Mark& mark = marks_.emplace_back();
    if (!gradient.defined()) continue;
    mark.data = gradient.data_ptr();
    mark.version = gradient._version();
    if (!is_looked_into(gradient)) continue;
    mark.furthest = furthest(gradient);
    mark.bits = bits_at(gradient, mark.furthest);
    if (copies) mark.copy = gradient.detach().clone();
  }
}

bool GradientWatch::holds(const Mark& mark, const at::Tensor& gradient) {
  if (!gradient.defined()) return mark.data == nullptr;
  if (gradient.data_ptr() != mark.data || gradient._version() != mark.version) return false;
  if (!is_looked_into(gradient)) return true;
  if (mark.copy.defined()) return std::ranges::equal(bytes_of(gradient), bytes_of(mark.copy));
  return bits_at(gradient, mark.furthest) == mark.bits;
}

std::optional<std::size_t> GradientWatch::changed(const std::vector<at::Tensor>& gradients) const {
  for (std::size_t p = 0; p < marks_.size(); ++p)
    if (!holds(marks_[p], gradients[p])) return p;
  return std::nullopt;
}

}  // namespace riffle::adapter
