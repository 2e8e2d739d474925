// One line per refused connection, but never a flood: ten at once, then one per second, which says
// how many it stands for.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>

#include "riffle/engine.h"

namespace riffle::store {

class Refusals {
 public:
  explicit Refusals(std::function<void(const std::string&)> log) : log_(std::move(log)) {}

  void report(const std::string& line, Deadline now) {
    allowance_ = std::min(burst, allowance_ + Seconds(now - last_).count());
    last_ = now;
    if (allowance_ < 1) {
      ++unsaid_;
      return;
    }
    allowance_ -= 1;
    log_(unsaid_ == 0 ? line : fmt::format("{} ({} more like it not shown)", line, unsaid_));
    unsaid_ = 0;
  }

 private:
  static constexpr double burst = 10;
  std::function<void(const std::string&)> log_;
  double allowance_ = burst;
  Deadline last_ = Clock::now();
  long unsaid_ = 0;
};

}  // namespace riffle::store
