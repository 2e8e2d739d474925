// What the ranks of a session must agree on before they begin: strategy, model, world, times. The
// lowest rank decides where there is a choice; a rank that differs is named on all of them.
#pragma once

#include "riffle/session.h"
#include "runtime/exchanger.h"

namespace riffle::runtime {

struct Agreement {
  World world;
  Trace trace;
  std::uint64_t session = 0;  // a number of its own
  double overlap = 1;         // overlap_share()
  Step step = 0;
  std::vector<int> layers_each;  // the buckets of a session that is resumed; empty: not yet made
  int sensing_window = 0;        // in steps; 0: nothing is sensed
  bool measured = false;         // the times are, and what was planned on them is decided
};

// What a checkpoint of this rank says, where one is resumed.
struct Resumed {
  std::string cluster;  // JSON
  std::string trace;    // JSON
  Step step = 0;
  std::vector<int> layers_each;
  std::string running;  // the strategy's spec
  std::string plan;     // JSON; empty: none
  bool measured = false;
};

// All ranks learn who differs, and from whom: UsageError.
void check_equal(Exchanger& exchanger, const std::string& text, std::string_view what);

Agreement agree(Exchanger& exchanger, const NamedStrategy& strategy, const ModelSpec& model,
                const SessionOptions& options, const std::optional<Resumed>& resumed);

// UsageError where something is to be rounded that is not f32.
void check_rounding(const ModelSpec& model, const schedule::Needs& needs);

// A layer per parameter, with times modelled from the sizes.
Trace modelled_trace(const ModelSpec& model);
// Layers without a shape take that of their parameter.
Trace with_shapes(Trace trace, const ModelSpec& model);

// Text that two ranks have in common exactly when their models are alike.
std::string fingerprint(const ModelSpec& model);

// How much of the time that exchanges take they hide under computing, 0 to 1. Between hosts they
// mostly wait, so all of it; inside a host they are work for a core, so it takes one that does not
// compute.
double overlap_share(int hosts, int ranks, int compute_threads, unsigned cores);
// The times in which something can be hidden.
Trace overlapped(Trace trace, double share);

}  // namespace riffle::runtime
