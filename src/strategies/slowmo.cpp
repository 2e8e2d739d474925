// SlowMo: tau local steps, then an average, then a slow momentum step of all workers along what the
// average has moved from the last agreed weights.
// Wang, Tantia, Ballas, Rabbat, "SlowMo: Improving communication-efficient distributed SGD with
// slow momentum", ICLR 2020, arXiv:1910.00643:
//   u <- beta*u + (x_old - mean)/lr;  x <- x_old - alpha*lr*u.
// Here `outer` is alpha, `momentum` is beta, and U = lr*u is what is kept:
//   U <- beta*U + (x_old - mean);  x <- x_old - alpha*U,
// an outer heavy-ball step. While the learning rate is constant that is the paper's rule exactly,
// and no rate has to be known. Where a schedule changes lr to lr', the paper's u would come to
// lr'*u in the next round; here the momentum keeps the lengths that were moved, lr*u. The workers'
// own optimizers keep their state, or average it (mix_state).
// Cost: T(M) every tau steps, nothing hidden, as local SGD.
#include "strategies/builtin.h"
#include "strategies/rounds.h"
#include "strategies/weight_average.h"

namespace riffle::strategies {
namespace {

// What momentum at the end of rounds costs in runs of 120 and 160 steps; docs/converge.md says how.
constexpr double kWorth = 0.79;

}  // namespace

StrategyInfo slowmo() {
  return {
      .name = "slowmo",
      .summary = "tau local steps, then a slow momentum step along their mean",
      .paper = "arXiv:1910.00643",
      .options = {{"tau", "12", "local steps between two averages"},
                  {"outer", "1", "the slow learning rate, the paper's alpha"},
                  {"momentum", "0.5", "the slow momentum, the paper's beta"},
                  mix_state_option()},
      .page = {.idea =
                   "`tau` local steps and an average, as in [local-sgd](local-sgd.md); then all "
                   "workers take a heavy-ball step along what the average has moved: "
                   "U <- momentum\\*U + (x_old - mean), x <- x_old - outer\\*U.\n\n"
                   "The paper divides the move by the learning rate and multiplies the step by "
                   "it. While that rate is constant the two cancel, and this is the paper's "
                   "rule exactly. Where a schedule changes the rate, the momentum here keeps "
                   "the lengths that were moved; the paper's would be scaled by new rate over "
                   "old. With `momentum=0` and `outer=1` it is local SGD.",
               .when = "Where local-sgd loses accuracy and its traffic is what you can afford: "
                       "one average every `tau` steps, and two more copies of the weights. "
                       "Momentum m makes the outer step 1/(1-m) times as long in the end, so "
                       "lower the learning rate before you raise it."},
      .candidates = {"tau=4", "tau=48"},
      .traffic = {ring_round_traffic()},
      .make = [](const Options& options) {
        const double momentum = options.number("momentum", 0, 0.999999);
        return std::make_unique<Rounds>(options,
                                        outer(options.number("outer", 1e-6, 10), momentum, false),
                                        momentum > 0 ? kWorth : 1);
      }};
}

}  // namespace riffle::strategies
