// The timing simulator: how long a step takes under a strategy on a cluster, and why.
// docs/simulator.md has the model, what it leaves out and how it was checked.
#pragma once

#include <optional>

#include "riffle/change.h"
#include "riffle/strategy.h"
#include "riffle/timeline.h"

namespace riffle {

// One bucket's exchange, as worker 0 saw it in the last simulated step; times from that step's
// start.
struct SimulatedBucket {
  std::vector<std::string> layers;
  Bytes bytes;
  Seconds start{};
  Seconds end{};
};

// The workers have noticed a change of the network and run another schedule.
struct Replanned {
  Seconds happened{};  // the first change that they had not noticed
  Seconds at{};        // from the beginning
  Step step = 0;
  std::string what;
  Seconds before{};  // a step in the last window of the schedule before
  bool operator==(const Replanned&) const = default;
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
  std::vector<Replanned> replanned;
  // What it took: events handled, and changes of the rate that flows between two places get.
  std::int64_t events = 0;
  std::int64_t rate_changes = 0;
};

// What `riffle simulate --format json` prints.
std::string to_json(const Simulation& simulation);

struct SimulateOptions {
  // Of jitter and stragglers. The same seed gives the same numbers, everywhere.
  std::uint64_t seed = 0;

  // Steps that are measured, rounded up to whole periods of the strategy. Zero: where nothing is
  // random, until one period takes as long as the one before; else about 2048 steps of a worker,
  // at least a period; 32 for a strategy without a period.
  int steps = 0;
  // Steps before those. Below zero: until pipelines and delayed exchanges are full.
  int warmup = -1;

  // What the strategy plans for, where that is not the cluster it runs on: the network has changed
  // since.
  std::optional<Cluster> planned{};

  // What happens meanwhile. Then nothing is left out as warm-up unless asked for, and 32 steps are
  // measured.
  std::vector<Change> changes{};
  // Workers plan again when they notice what happened, as sessions do that measure their network.
  bool replan = false;

  // Where the measured steps are recorded, of workers below `timeline_workers`.
  Timeline* timeline = nullptr;
  int timeline_workers = 64;
};

// UsageError for a strategy that the cluster cannot carry, and for a program that cannot go on.
Simulation simulate(const Trace& trace, const Cluster& cluster, const NamedStrategy& strategy,
                    const SimulateOptions& options = {});

}  // namespace riffle
