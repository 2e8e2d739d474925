// Which hosts compute slowly, from the time each needs for its own part of a step. Pure: the same
// times give the same answer on every rank.
#pragma once

#include <vector>

#include "model/slow_host.h"
#include "riffle/units.h"

namespace riffle::schedule {

class Pace {
 public:
  // A host is slow from kSlowHost times the median on, and again as the others below this many;
  // between the two it stays what it was.
  static constexpr double kUsual = 1.6;
  // What it needs more must count: so much of a step, at least.
  static constexpr double kShare = 0.25;
  static constexpr Seconds kNoise = milliseconds(1);
  // In so many windows in a row.
  static constexpr int kWindows = 2;

  explicit Pace(std::vector<double> factors)
      : factors_(std::move(factors)), counts_(factors_.size()) {}

  // The time a step of one window took each rank, without its waits, and with them. True: factors()
  // has changed.
  bool look(const std::vector<Seconds>& busy, const std::vector<Seconds>& whole);
  // By rank; 1 for those that are not slow.
  [[nodiscard]] const std::vector<double>& factors() const { return factors_; }

 private:
  std::vector<double> factors_;
  std::vector<int> counts_;  // windows in a row that say the opposite
};

}  // namespace riffle::schedule
