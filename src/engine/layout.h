// What lies where in a rank's segment. All ranks compute the same layout from the world's size.
//
//   header | board | a ring to every rank | heap (grows)
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/bell.h"
#include "engine/ring.h"

namespace riffle::engine {

struct SegmentHeader {
  alignas(64) std::atomic<std::uint64_t> beats;  // grows while the rank's heartbeat runs
  std::atomic<std::uint32_t> left;               // the rank has closed its engine
  std::atomic<std::uint32_t> fenced;             // 1 + the rank that declared this one failed
  alignas(64) std::atomic<std::uint64_t> end;    // bytes of the segment that are backed by memory
  Bell bells[HostMemory::bells];
  Bell mail;  // messages or room for them
};

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

struct Layout {
  int size = 1;

  [[nodiscard]] static constexpr std::size_t board() {
    return round_up(sizeof(SegmentHeader), page_bytes);
  }
  [[nodiscard]] constexpr std::size_t board_bytes() const {
    return static_cast<std::size_t>(size) * 3 * page_bytes;
  }
  [[nodiscard]] constexpr std::size_t ring(int to) const {
    return board() + board_bytes() + static_cast<std::size_t>(to) * ring_stride;
  }
  [[nodiscard]] constexpr std::size_t heap() const { return ring(size); }

  static constexpr std::size_t ring_stride = round_up(sizeof(Ring), page_bytes);
};

}  // namespace riffle::engine
