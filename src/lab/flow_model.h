// The flow model of a network: flows that share links max-min fairly.
#pragma once

#include <vector>

#include "lab/wiring.h"

namespace riffle::lab {

struct Flow {
  int from = 0;
  int to = 0;
  double bytes = 0;
};

// Bytes per second of each flow while all of them run.
std::vector<double> fair_rates(const Wiring& wiring, const std::vector<Flow>& flows);

// From the start of all to the arrival of the last byte.
Seconds time_of(const Wiring& wiring, std::vector<Flow> flows);

}  // namespace riffle::lab
