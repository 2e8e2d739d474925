#include "schedule/phases.h"

#include <algorithm>

namespace riffle::schedule {

std::optional<Seconds> Phases::level(int phase, Seconds value) {
  if (phase == kNone) return value;
  Known& known = phases_[phase];
  if (known.values < kLearned) {
    known.least = known.values == 0 ? value : std::min(known.least, value);
    ++known.values;
    return std::nullopt;
  }
  if (reference_ == Seconds{}) reference_ = known.least;
  if (known.least <= Seconds{}) return value;
  return value * (reference_ / known.least);
}

}  // namespace riffle::schedule
