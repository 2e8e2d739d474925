// A rank's memory as the others map it. A segment is mapped once, at more addresses than it has
// memory, so that it can grow without being mapped anew; `end` in its header says how far it goes.
#pragma once

#include <cstddef>
#include <string>

#include "engine/layout.h"

namespace riffle::engine {

class Segment {
 public:
  Segment() = default;
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  // Anonymous shared memory (memfd): it has no name, so it vanishes with the last process that maps
  // it, however that ends, and the size of /dev/shm does not matter.
  static Segment create(const Layout& layout);
  // The segment that process `pid` holds as file descriptor `fd`.
  static Segment open(int pid, int fd);
  // Memory of this process alone.
  static Segment local(const Layout& layout);

  [[nodiscard]] bool empty() const { return base_ == nullptr; }
  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  [[nodiscard]] int fd() const { return fd_; }

  // Backs everything below `end` with memory. UsageError when there is not enough, before any of it
  // is used. Owner only.
  void grow(std::size_t end);
  // Gives the memory of a range back; it reads as zeros afterwards. Owner only.
  void discard(std::size_t offset, std::size_t bytes) noexcept;
  // Backs a discarded range again.
  void back(std::size_t offset, std::size_t bytes);

 private:
  Segment(std::byte* base, std::size_t capacity, int fd)
      : base_(base), capacity_(capacity), fd_(fd) {}

  std::byte* base_ = nullptr;
  std::size_t capacity_ = 0;
  int fd_ = -1;
};

}  // namespace riffle::engine
