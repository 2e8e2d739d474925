// Which strategy a session runs, and why: the one that was asked for, or with "auto" the one that a
// plan says: of a file, of a checkpoint, or made by the lowest rank on what was measured.
#pragma once

#include "runtime/agreement.h"

namespace riffle::runtime {

struct Running {
  NamedStrategy strategy;
  std::optional<Plan> plan{};
};

// What ranks and checkpoints must have in common.
const std::string& asked_spec(const NamedStrategy& strategy, const SessionOptions& options);

// What to begin with, the same on all ranks, who all call it. A plan's network and times are put
// into `options`. UsageError where ranks have asked for different things.
Running begin_running(Exchanger& exchanger, const NamedStrategy& strategy, const ModelSpec& model,
                      const std::optional<Resumed>& resumed, SessionOptions& options);

// What to run from now on, planned by the lowest rank and told to all: the strategy that runs now
// where none is clearly faster. `trace` and `world` are what was measured, `overlap` is
// overlap_share(). UsageError, on all ranks, where there is nothing to plan with.
Running plan_running(Exchanger& exchanger, const Automatic& automatic, const NamedStrategy& now,
                     const Trace& trace, const World& world, double overlap);

}  // namespace riffle::runtime
