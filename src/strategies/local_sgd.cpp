// Local SGD: every worker trains on its own for tau steps, then all average their weights.
// Stich, "Local SGD converges fast and communicates little", ICLR 2019, arXiv:1805.09767.
// Cost: T(M) every tau steps, nothing hidden; traffic falls to 1/tau.
#include "strategies/builtin.h"
#include "strategies/rounds.h"
#include "strategies/weight_average.h"

namespace riffle::strategies {

StrategyInfo local_sgd() {
  return {
      .name = "local-sgd",
      .summary = "tau steps alone, then one average of the weights",
      .paper = "arXiv:1805.09767",
      .options = {{"tau", "8", "steps between two averages"}, mix_state_option()},
      .page = {.idea =
                   "Every worker trains alone for `tau` steps; then one average of the weights.",
               .when = "Slow networks and iid data, when waiting once every `tau` steps is fine. "
                       "With tau = 8 accuracy on MNIST was half a point below bsp at the same "
                       "learning rate; [dasgd](dasgd.md) hides the average too."},
      .candidates = {"tau=2", "tau=4", "tau=16"},
      .traffic = {ring_round_traffic()},
      .make = [](const Options& options) { return std::make_unique<Rounds>(options, replace()); }};
}

}  // namespace riffle::strategies
