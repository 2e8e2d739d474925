// The timing simulator: how long a step takes under a strategy on a cluster, and why.
#pragma once

#include <string>
#include <vector>

#include "riffle/strategy.h"

namespace riffle {

// One bucket's exchange, as worker 0 saw it in the last simulated step; times from that step's
// start.
struct SimulatedBucket {
  std::vector<std::string> layers;
  Bytes bytes;
  Seconds start{};
  Seconds end{};
};

struct Simulation {
  std::string strategy;
  std::vector<std::pair<std::string, std::string>> options;
  int workers = 0;
  Seconds iteration{};              // steady-state mean per step over whole periods
  Seconds compute{};                // forward, backward and optimizer of one step
  Seconds exposed_communication{};  // iteration - compute
  double speedup = 0;               // over one worker: workers * compute / iteration
  double efficiency = 0;            // speedup / workers
  double bytes_per_worker = 0;      // sent per step, mean over workers
  double messages_per_worker = 0;
  std::vector<SimulatedBucket> buckets;
};

Simulation simulate(const Trace& trace, const Cluster& cluster, const NamedStrategy& strategy);

}  // namespace riffle
