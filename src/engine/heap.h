// The buffers of one rank: ranges of its segment, page by page, first fit.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "engine/segment.h"

namespace riffle::engine {

class Heap {
 public:
  Heap(Segment& segment, std::size_t begin) : segment_(segment), end_(begin) {}

  // Zeroed memory. UsageError when there is not enough.
  std::size_t allocate(std::size_t bytes);
  void release(std::size_t offset) noexcept;
  // Whether the range lies inside one buffer that is in use.
  bool holds(std::size_t offset, std::size_t bytes) const;

 private:
  Segment& segment_;
  mutable std::mutex mutex_;
  std::size_t end_;                          // of what was ever used
  std::map<std::size_t, std::size_t> free_;  // offset -> bytes, no two adjacent
  std::map<std::size_t, std::size_t> used_;
};

}  // namespace riffle::engine
