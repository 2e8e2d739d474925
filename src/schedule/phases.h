// Takes out of a number what comes again with every period of a schedule: partners, and who shares
// a link with whom, differ from phase to phase, and so do times. Without this a schedule's own
// rhythm would count as noise, and hide a change. Pure, like usual.h.
#pragma once

#include <map>
#include <optional>

#include "riffle/units.h"

namespace riffle::schedule {

class Phases {
 public:
  static constexpr int kNone = -1;  // of a schedule without a rhythm
  // So many values of a phase tell what it takes; the least of them, since noise only adds.
  static constexpr int kLearned = 2;

  // The value as if its phase took what the phase known first takes; nothing while its phase is
  // being learned.
  std::optional<Seconds> level(int phase, Seconds value);

 private:
  struct Known {
    Seconds least{};
    int values = 0;
  };
  std::map<int, Known> phases_;
  Seconds reference_{};
};

}  // namespace riffle::schedule
