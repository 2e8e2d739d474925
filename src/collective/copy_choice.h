// Which kind of stores to fill shared chunks with: ordinary ones, or such that go around the cache.
// Either was seen to be twice as fast as the other on one machine at different times
// (docs/performance.md), so it is measured: each kind is tried a few times, then now and then, and
// the faster one is used. The choice is each worker's own; it changes no result.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace riffle::collective {

class CopyChoice {
 public:
  enum Kind : std::uint8_t { in_cache, around_cache };

  // The kind to use for the next call of this many bytes.
  Kind next(std::size_t bytes) {
    Record& record = of(bytes);
    const std::uint32_t turn = record.turn++;
    if (turn < first_tries) return turn % 2 == 0 ? in_cache : around_cache;
    const Kind better =
        record.cost[in_cache] <= record.cost[around_cache] ? in_cache : around_cache;
    if (turn % retry != 0) return better;
    return better == in_cache ? around_cache : in_cache;
  }

  void took(std::size_t bytes, Kind kind, std::chrono::nanoseconds time) {
    double& cost = of(bytes).cost[kind];
    const double sample = static_cast<double>(time.count()) / static_cast<double>(bytes);
    // The best of late: others may delay a call, nothing makes it faster than it is.
    cost = cost == 0 ? sample : std::min(sample, cost * forget);
  }

 private:
  static constexpr std::uint32_t first_tries = 6;
  static constexpr std::uint32_t retry = 128;
  static constexpr double forget = 1.02;

  struct Record {
    std::uint32_t turn = 0;
    std::array<double, 2> cost{};
  };
  // Sizes within a factor of four share a record.
  Record& of(std::size_t bytes) {
    return records_[static_cast<std::size_t>(std::bit_width(bytes)) / 2];
  }

  std::array<Record, 33> records_;
};

}  // namespace riffle::collective
