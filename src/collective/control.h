// Small calls among all ranks of a session, between its steps: what ranks agree on and measure.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "riffle/collective.h"

namespace riffle::collective {

// Calls outside of programs have a lane of their own.
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
  [[nodiscard]] std::string broadcast(std::string text) const;
  void all_reduce(std::span<double> values, Reduction reduction) const;
};

}  // namespace riffle::collective
