// When an owner answers (Collective::serve in program.h): how often each member has sent, and whom
// that sets free. Pure: runtime, simulators and verifier ask the same one.
#pragma once

#include <vector>

#include "riffle/world.h"

namespace riffle::schedule {

class Clocks {
 public:
  // `ahead` as in an exchange.
  Clocks(int members, int ahead);

  // A member has sent; it sends again only after its answer. Those to be answered now, ascending:
  // what they have sent is added in this order, then all get what is held.
  std::vector<int> sent(int member);

  [[nodiscard]] Step of(int member) const { return sent_[member]; }
  [[nodiscard]] bool waits(int member) const { return waits_[member] != 0; }

 private:
  int ahead_;
  std::vector<Step> sent_;
  std::vector<char> waits_;
};

}  // namespace riffle::schedule
