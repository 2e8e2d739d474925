#include "runtime/flat.h"

#include <algorithm>

namespace riffle::runtime {

std::size_t aligned(std::size_t count, DType dtype) {
  const std::size_t unit = 64 / static_cast<std::size_t>(size_of(dtype).count);
  return (count + unit - 1) / unit * unit;
}

Flat::Flat(Memory& memory, const Parts& parts) {
  if (parts.empty()) return;
  std::size_t bytes = 0;
  for (const Part& part : parts) {
    const TensorView padded{nullptr, aligned(part.count, part.dtype), part.dtype};
    bytes += bytes_of(padded);
  }
  block_ = memory.allocate(bytes);
  std::byte* next = block_.bytes.data();
  for (const Part& part : parts) {
    parts_.push_back({next, part.count, part.dtype});
    next += bytes_of({next, aligned(part.count, part.dtype), part.dtype});
  }
}

TensorView Flat::at(const Place& place) const {
  return part_of(parts_.at(static_cast<std::size_t>(place.part)), place.offset, place.count);
}

TensorView Flat::flag_at(const Place& place) const {
  return part_of(parts_.at(static_cast<std::size_t>(place.part)), place.flag, 1);
}

Flat FlatPool::take(Memory& memory, const Parts& parts) {
  const auto found = std::ranges::find(free_, parts, &std::pair<Parts, Flat>::first);
  if (found == free_.end()) return {memory, parts};
  Flat flat = std::move(found->second);
  free_.erase(found);
  return flat;
}

void FlatPool::give_back(Parts parts, Flat flat) {
  if (!flat.empty()) free_.emplace_back(std::move(parts), std::move(flat));
}

}  // namespace riffle::runtime
