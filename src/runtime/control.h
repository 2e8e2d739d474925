// Collectives among all ranks of a session, between steps, on a lane of their own.
#pragma once

#include <span>

#include "riffle/collective.h"

namespace riffle::runtime {

constexpr int kControlLane = 15;

struct Control {
  Collectives& collectives;
  Group ranks;
  Seconds timeout;
  std::uint32_t epoch = 0;

  [[nodiscard]] CollectiveOptions options(Reduction reduction = Reduction::mean) const {
    return {.lane = kControlLane, .reduction = reduction, .timeout = timeout, .epoch = epoch};
  }
  // The lowest rank's, for all.
  void broadcast(std::span<std::byte> bytes) const;
  void all_reduce(std::span<double> values, Reduction reduction) const;
};

}  // namespace riffle::runtime
