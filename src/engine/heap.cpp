#include "engine/heap.h"

#include <algorithm>

#include "riffle/error.h"

namespace riffle::engine {

std::size_t Heap::allocate(std::size_t bytes) {
  if (bytes > (std::size_t{1} << 46))
    usage_error("not enough memory for a buffer of {} bytes", bytes);
  bytes = round_up(std::max<std::size_t>(bytes, 1), page_bytes);
  const std::lock_guard lock(mutex_);
  const auto hole = std::find_if(free_.begin(), free_.end(),
                                 [&](const auto& range) { return range.second >= bytes; });
  if (hole == free_.end()) {
    segment_.grow(end_ + bytes);
    const std::size_t offset = std::exchange(end_, end_ + bytes);
    used_.emplace(offset, bytes);
    return offset;
  }
  const auto [offset, room] = *hole;
  segment_.back(offset, bytes);
  free_.erase(hole);
  if (room > bytes) free_.emplace(offset + bytes, room - bytes);
  used_.emplace(offset, bytes);
  return offset;
}

void Heap::release(std::size_t offset) noexcept {
  const std::lock_guard lock(mutex_);
  const auto range = used_.find(offset);
  if (range == used_.end()) return;
  auto [begin, bytes] = *range;
  used_.erase(range);
  segment_.discard(begin, bytes);
  auto next = free_.lower_bound(begin);
  if (next != free_.end() && next->first == begin + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      before->second += bytes;
      return;
    }
  }
  free_.emplace(begin, bytes);
}

bool Heap::holds(std::size_t offset, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  auto range = used_.upper_bound(offset);
  if (range == used_.begin()) return false;
  --range;
  return offset + bytes <= range->first + range->second;
}

}  // namespace riffle::engine
