// What the ranks of a session must agree on before they begin: strategy, model, world, times. Rank
// 0 decides where there is a choice; a rank that differs is named on all of them.
#pragma once

#include "riffle/session.h"

namespace riffle::runtime {

// Calls outside of programs have a lane of their own.
constexpr int kControlLane = 15;

// Collectives among all ranks of a session, between steps.
struct Control {
  Collectives& collectives;
  Group ranks;
  Seconds timeout;
  std::uint32_t epoch = 0;

  [[nodiscard]] CollectiveOptions options(Reduction reduction = Reduction::mean) const {
    return {.lane = kControlLane, .reduction = reduction, .timeout = timeout, .epoch = epoch};
  }
  // The lowest rank's, for all.
  void broadcast(std::span<std::byte> bytes) const;
  [[nodiscard]] std::string broadcast(std::string text) const;
  void all_reduce(std::span<double> values, Reduction reduction) const;
};

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
