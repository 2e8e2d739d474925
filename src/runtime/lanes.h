// Sessions of one engine run side by side, each on lanes of its own: calls of one lane must come in
// one order on all ranks, and exchanges of two sessions do not.
#pragma once

#include "collective/control.h"

namespace riffle::runtime {

// Buckets that come later, and another strategy, may use more lanes than the first programs: a
// session keeps at least so many. No strategy of ours uses more.
constexpr int kLeastLanes = 3;

// Lanes that this session keeps while it lives; the same on all ranks, who all make one at the same
// time.
class Lanes {
 public:
  // `count` for programs, and one more for the session where it is `watched`. UsageError, on all
  // ranks, where other sessions leave too few.
  Lanes(const collective::Control& control, int count, bool watched);
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // Where a program's lane is. UsageError where it is none of the kept ones.
  [[nodiscard]] int at(int lane) const;
  // The session's own, as a program would number it.
  [[nodiscard]] int own() const { return count_ - 1; }

 private:
  Collectives& collectives_;
  int first_ = 0;
  int count_;
};

}  // namespace riffle::runtime
