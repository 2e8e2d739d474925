// What a run comes to, as it is printed.
#pragma once

#include "simulate/simulator.h"

namespace riffle::simulator {

// Of all workers, over the steps that count.
struct Totals {
  double seconds = 0;  // mean over workers
  double steps = 0;
  double bytes = 0;
  double messages = 0;
  std::int64_t events = 0;
  std::int64_t rate_changes = 0;

  void add(const Simulator& simulator, Step from, Step to);
};

// All but buckets and what was planned again.
Simulation result_of(const Trace& trace, const Cluster& cluster, const NamedStrategy& strategy,
                     const Totals& totals);

// The last step before `before` all of whose exchanges worker 0 has seen the end of, and that has
// any.
std::vector<SimulatedBucket> last_buckets(const Simulator& simulator, const Trace& trace,
                                          Step before);

}  // namespace riffle::simulator
