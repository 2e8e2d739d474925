// DaSGD: tau local steps, then an average of the weights that travels under the next d steps and is
// merged late. merge=mix is the published interpolation, merge=correct the delta rule, which loses
// no step.
// Zhou et al., "DaSGD: Squeezing SGD Parallelization Performance ...", arXiv:2006.00441.
// Cost: a round of tau steps stalls for max(0, T(M) - d*T_step).
#include "riffle/error.h"
#include "strategies/builtin.h"
#include "strategies/weight_average.h"

namespace riffle::strategies {
namespace {

class Dasgd : public Strategy {
 public:
  Dasgd(int tau, int delay, Merge merge, bool mix_state)
      : tau_(tau), delay_(delay), merge_(merge), mix_state_(mix_state) {}

  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& /*cost*/,
                                   const World& /*world*/) const override {
    return one_bucket(trace);
  }
  [[nodiscard]] Program program(Step step, const World& world,
                                const BucketPlan& buckets) const override {
    Program program;
    if (step % tau_ != tau_ - 1) return program;
    average_round(program, {world.ranks()}, buckets, after_step(delay_), merge_);
    // The delta rule could turn a second moment negative; a mean of states cannot.
    if (mix_state_) add_state(program, after_step(delay_), mix(merge_.xi));
    return program;
  }
  [[nodiscard]] Traits traits(const World& /*world*/) const override {
    Traits traits{.period = tau_, .staleness = delay_, .mixed = Payload::weight};
    // The interpolation keeps xi of the d local steps that were taken meanwhile (papers.md 4.2).
    if (merge_.kind == Merge::Kind::mix)
      traits.effective_step = (tau_ - (1 - merge_.xi) * delay_) / tau_;
    return traits;
  }

 private:
  int tau_;
  int delay_;
  Merge merge_;
  bool mix_state_;
};

std::unique_ptr<Strategy> make_dasgd(const Options& options) {
  const auto tau = static_cast<int>(options.integer("tau", 1));
  const auto delay = static_cast<int>(options.integer("delay", 1));
  if (delay > tau)
    usage_error("{}: {} is longer than a round of tau={} steps", options.where("delay"), delay,
                tau);
  const bool mixes = options.choice("merge") == "mix";
  if (options.given("xi") && !mixes)
    usage_error("{}: only merge=mix has a local share", options.where("xi"));
  const double xi = options.number("xi", 0, 1);
  if (mixes && xi == 1) usage_error("{}: 1 would never mix", options.where("xi"));
  return std::make_unique<Dasgd>(tau, delay, mixes ? mix(xi) : correct(),
                                 options.boolean("mix_state"));
}

}  // namespace

StrategyInfo dasgd() {
  return {
      .name = "dasgd",
      .summary = "tau local steps; their average travels under the next d steps",
      .paper = "arXiv:2006.00441",
      .options = {{"tau", "4", "local steps in a round"},
                  {"delay", "1", "steps until the average is merged, at most tau"},
                  {"merge", "correct|mix", "the delta rule, or the published interpolation"},
                  {"xi", "0.25", "the local share of merge=mix"},
                  mix_state_option()},
      .page =
          {.idea =
               "Delayed averaging: `tau` local steps, and the average of the weights travels while "
               "the next `delay` steps are computed. When it comes, `merge=correct` adds the "
               "difference between the mean and what was sent, so nothing learned meanwhile is "
               "lost; `merge=mix` is the published rule with its local share `xi`.",
           .when = "Slow or far networks: communication is hidden entirely when `delay` steps take "
                   "longer than the average. Costs some accuracy; keep `delay` small (1 or 2), and "
                   "halve the learning rate before raising it."},
      .candidates = {"tau=2,delay=1", "tau=4,delay=2", "tau=4,delay=4", "tau=8,delay=2",
                     "tau=8,delay=4", "tau=4,delay=1,merge=mix", "tau=4,delay=2,merge=mix"},
      .traffic = {ring_round_traffic()},
      .make = make_dasgd};
}

}  // namespace riffle::strategies
