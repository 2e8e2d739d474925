// SSP: asp with a bound. A worker may be at most `staleness` steps ahead of the slowest: the owner
// of a shard holds back its answer until the slowest has pushed enough. With 0 it is synchronous.
// Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server",
// NIPS 2013.
// Cost per step: that of asp; the fast wait for the slowest once they are that far ahead.
#include <algorithm>

#include "strategies/builtin.h"
#include "strategies/parameter_server.h"

namespace riffle::strategies {

StrategyInfo ssp() {
  return {
      .name = "ssp",
      .summary = "asp, but nobody is more than `staleness` steps ahead of the slowest",
      .paper = "NIPS 2013 (stale synchronous parallel)",
      .options = {{"staleness", "4", "steps that a worker may be ahead of the slowest"},
                  bucket_option()},
      .page = {.idea =
                   "[asp](asp.md) with a bound: a shard's owner answers a worker only when no "
                   "other has pushed fewer updates by more than `staleness`. So in step t a worker "
                   "has all updates of the steps before t - staleness, and perhaps newer ones. An "
                   "update is added when its worker is answered, several at one time in the order "
                   "of ranks: with `staleness=0` all are answered together and the result is that "
                   "of averaging every update, bit for bit the same in every run; for SGD, with "
                   "momentum or without, that is synchronous SGD.",
               .when =
                   "To compare with, and where workers are slow by turns: a hiccup of fewer "
                   "than `staleness` steps holds up nobody. A host that is always slow holds up "
                   "everybody, `staleness` steps later. Not over process groups.",
               .more = local_optimizer_section()},
      .candidates = {"staleness=1"},
      .traffic = {served_traffic()},
      .make = [](const Options& options) {
        return std::make_unique<ParameterServer>(
            options, static_cast<int>(std::min<std::int64_t>(options.integer("staleness", 0),
                                                             std::int64_t{1} << 20)));
      }};
}

}  // namespace riffle::strategies
