// What the ranks of a session must agree on before they begin: strategy, model, world, times. Rank
// 0 decides where there is a choice; a rank that differs is named on all of them.
#pragma once

#include "collective/control.h"
#include "riffle/session.h"

namespace riffle::runtime {

using collective::Control;
using collective::kControlLane;

struct Agreement {
  World world;
  Trace trace;
  std::uint64_t session = 0;  // a number of its own
  double overlap = 1;         // overlap_share()
  Step step = 0;
  std::vector<int> layers_each;  // the buckets of a session that is resumed; empty: not yet made
  int sensing_window = 0;        // in steps; 0: nothing is sensed
};

// What a checkpoint of this rank says, where one is resumed.
struct Resumed {
  std::string cluster;  // JSON
  std::string trace;    // JSON
  Step step = 0;
  std::vector<int> layers_each;
};

Agreement agree(Engine& engine, const Control& control, const NamedStrategy& strategy,
                const ModelSpec& model, const SessionOptions& options,
                const std::optional<Resumed>& resumed);

// A layer per parameter, with times modelled from the sizes.
Trace modelled_trace(const ModelSpec& model);

// Text that two ranks have in common exactly when their models are alike.
std::string fingerprint(const ModelSpec& model);

}  // namespace riffle::runtime
