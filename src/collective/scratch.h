// Memory for what is received to be added. Kept between calls: fresh pages cost more than a copy.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace riffle::collective {

// Grows, never shrinks; what was in it is lost when it grows.
class Scratch {
 public:
  std::byte* reserve(std::size_t bytes) {
    if (bytes > size_) {
      bytes_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      size_ = bytes;
    }
    return bytes_.get();
  }
  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_ = 0;
};

// Any thread.
class ScratchPool {
 public:
  Scratch take() {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) return {};
    Scratch scratch = std::move(free_.back());
    free_.pop_back();
    return scratch;
  }
  void give_back(Scratch scratch) {
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(scratch));
  }

 private:
  std::mutex mutex_;
  std::vector<Scratch> free_;
};

}  // namespace riffle::collective
