// What a simulation found, as data; `riffle simulate --format json` prints it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "riffle/units.h"

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
  // What it took: events handled, and changes of the rate that flows between two places get.
  std::int64_t events = 0;
  std::int64_t rate_changes = 0;
};

std::string to_json(const Simulation& simulation);

}  // namespace riffle
