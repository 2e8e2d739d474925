// A byte stream from one rank to another through shared memory: one writer, one reader.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace riffle::engine {

struct Ring {
  static constexpr std::size_t capacity = std::size_t{256} << 10;

  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> read;
  alignas(64) std::byte data[capacity];

  [[nodiscard]] std::size_t room() const {
    return capacity - static_cast<std::size_t>(written.load(std::memory_order_relaxed) -
                                               read.load(std::memory_order_acquire));
  }
  [[nodiscard]] std::size_t available() const {
    return static_cast<std::size_t>(written.load(std::memory_order_acquire) -
                                    read.load(std::memory_order_relaxed));
  }

  // Writes at most room() bytes of `from`, which the caller has checked.
  void put(std::span<const std::byte> from) {
    const std::uint64_t position = written.load(std::memory_order_relaxed);
    const std::size_t at = static_cast<std::size_t>(position % capacity);
    const std::size_t first = std::min(from.size(), capacity - at);
    if (first > 0) std::memcpy(data + at, from.data(), first);
    if (from.size() > first) std::memcpy(data, from.data() + first, from.size() - first);
    written.store(position + from.size(), std::memory_order_release);
  }
  // Reads `bytes` that are available; drops them when `to` is null.
  void take(std::byte* to, std::size_t bytes) {
    const std::uint64_t position = read.load(std::memory_order_relaxed);
    if (to != nullptr && bytes > 0) {
      const std::size_t at = static_cast<std::size_t>(position % capacity);
      const std::size_t first = std::min(bytes, capacity - at);
      std::memcpy(to, data + at, first);
      if (bytes > first) std::memcpy(to + first, data, bytes - first);
    }
    read.store(position + bytes, std::memory_order_release);
  }
};

}  // namespace riffle::engine
