// Whether the network or the processors set the pace of a lab.
#pragma once

#include "base/json.h"
#include "lab/lab.h"

namespace riffle::lab {

// Time of all processors since they were started: busy, and all of it; in ticks.
struct ProcessorTime {
  double busy = 0;
  double all = 0;
  static ProcessorTime now();
};

// Where the processors were the limit, figures are those of this machine, not of the network.
struct Pace {
  double busy = 0;  // share of the processors' time, whoever used it
  double late = 0;  // share of the packets that the switch delivered much too late
  [[nodiscard]] bool is_of_processors() const;
  [[nodiscard]] Json json() const;
};
Pace pace_since(const ProcessorTime& before, const Lab& lab);
// On stderr, where the processors set it.
void say_who_set(const Pace& pace);

}  // namespace riffle::lab
