// A stream: flows between two places that are served alike, at one rate. A flow ends when its
// stream has served each of its flows the flow's bytes more than at its start.
#pragma once

#include <array>
#include <vector>

#include "simulate/links.h"

namespace riffle::simulator {

// Where a stream goes, which is all that its rate depends on. It is FairRates' own.
struct Route {
  struct Use {
    int link = 0;
    int position = 0;  // in the link's list of streams
  };
  double cap = kNever;  // the most it can take
  int uses = 0;  // shared links on the way; where there are none the rate is the cap for good
  bool attached = false;  // on its links: it has flows
  bool asked = false;     // its rate is to be computed
  std::array<Use, kMostLinks> use{};
};

struct Stream {
  // Flows that end together.
  struct Entry {
    double tag = 0;
    int first = 0;
    int last = 0;
    int flows = 0;
  };

  double rate = 0;    // of each flow
  double served = 0;  // bytes, of each flow, up to `last`
  double last = 0;
  double scheduled = kNever;  // the event that counts; earlier ones are ignored
  double safe = kNever;       // up to this rate its flows crowd no worker's link
  int weight = 0;             // flows as links count them
  int path = 0;
  bool single = false;
  bool touched = false;
  Route route;
  std::vector<Entry> entries;  // ascending tags, from `head` on
  std::size_t head = 0;
};

}  // namespace riffle::simulator
