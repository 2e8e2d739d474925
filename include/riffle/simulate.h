// The timing simulator: how long a step takes under a strategy on a cluster, and why.
// docs/simulator.md has the model, what it leaves out and how it was checked.
#pragma once

#include "riffle/change.h"
#include "riffle/simulation.h"
#include "riffle/strategy.h"
#include "riffle/timeline.h"

namespace riffle {

struct SimulateOptions {
  // Of jitter and stragglers. The same seed gives the same numbers, everywhere.
  std::uint64_t seed = 0;

  // Steps that are measured, rounded up to whole periods of the strategy. Zero: where nothing is
  // random, until one period takes as long as the one before; else about 2048 steps of a worker,
  // at least a period; 32 for a strategy without a period.
  int steps = 0;
  // Steps before those. Below zero: until pipelines and delayed exchanges are full.
  int warmup = -1;

  // What happens meanwhile. Then nothing is left out as warm-up unless asked for, and 32 steps are
  // measured.
  std::vector<Change> changes{};

  // Where the measured steps are recorded, of workers below `timeline_workers`.
  Timeline* timeline = nullptr;
  int timeline_workers = 64;
};

// UsageError for a strategy that the cluster cannot carry, and for a program that cannot go on.
Simulation simulate(const Trace& trace, const Cluster& cluster, const NamedStrategy& strategy,
                    const SimulateOptions& options = {});

}  // namespace riffle
