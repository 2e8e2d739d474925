// Rates under load: bulk data of several pairs of hosts at once.
#pragma once

#include <vector>

#include "measure/place.h"

namespace riffle::measure {

struct Flow {
  Rank from = 0;
  Rank to = 0;
  Bytes piece;           // of the messages it is made of
  Seconds round_trip{};  // of a small message
};

// What the receiver of a flow saw.
struct Carried {
  Bandwidth rate;    // in the last two thirds of the time; in the last one where it still grew
  Bandwidth before;  // in the second third
  int pieces = 0;    // that came in the last two thirds
};

// Runs all flows for `time`, side by side, from one moment on. A rank has one end of one flow
// at most. All ranks of the job call it, with the same flows; the result is the same
// on all of them.
//
// A flow sends what its receiver has acknowledged lately, twice over: that doubles with every round
// trip until a link is full, as TCP itself does, and leaves little on its way when the time is up.
std::vector<Carried> carry(const Place& place, const std::vector<Flow>& flows, Seconds time);

}  // namespace riffle::measure
