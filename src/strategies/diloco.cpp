// DiLoCo: tau local steps, then the distance travelled is averaged and an outer Nesterov step takes
// all workers along it from the last agreed weights.
// Douillard et al., "DiLoCo: Distributed Low-Communication Training of Language Models",
// arXiv:2311.08105.
// Cost: T(M) every tau steps, nothing hidden; traffic falls to 1/tau.
#include "strategies/builtin.h"
#include "strategies/weight_average.h"

namespace riffle::strategies {
namespace {

// Its outer momentum needs long to settle: from runs of 160 to 240 steps; docs/converge.md says
// how.
constexpr double kWorth = 0.85;

class Diloco : public Strategy {
 public:
  Diloco(int tau, Merge merge, bool mix_state) : tau_(tau), merge_(merge), mix_state_(mix_state) {}

  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& /*cost*/,
                                   const World& /*world*/) const override {
    return one_bucket(trace);
  }
  [[nodiscard]] Program program(Step step, const World& world,
                                const BucketPlan& buckets) const override {
    Program program;
    if (step % tau_ != tau_ - 1) return program;
    average_round(program, {world.ranks()}, buckets, before_forward(), merge_);
    if (mix_state_) add_state(program, before_step(1), replace());
    return program;
  }
  [[nodiscard]] Traits traits(const World& /*world*/) const override {
    return {.period = tau_, .mixed = Payload::weight, .effective_step = kWorth};
  }

 private:
  int tau_;
  Merge merge_;
  bool mix_state_;
};

}  // namespace

StrategyInfo diloco() {
  return {.name = "diloco",
          .summary = "tau local steps, then an outer Nesterov step along their mean",
          .paper = "arXiv:2311.08105",
          .options = {{"tau", "20", "local steps between two outer steps"},
                      {"outer", "0.7", "learning rate of the outer step"},
                      {"momentum", "0.9", "momentum of the outer step"},
                      mix_state_option()},
          .page = {.idea = "`tau` local steps, then an outer optimizer (Nesterov momentum) takes "
                           "the mean of what the workers have moved as its gradient.",
                   .when = "Long runs over very slow networks: it sends little, and needs many "
                           "outer steps before it pays. In short runs it is far behind."},
          .candidates = {"tau=50"},
          .traffic = {ring_round_traffic()},
          .make = [](const Options& options) {
            return std::make_unique<Diloco>(
                static_cast<int>(options.integer("tau", 1)),
                outer(options.number("outer", 1e-6, 10), options.number("momentum", 0, 0.999999)),
                options.boolean("mix_state"));
          }};
}

}  // namespace riffle::strategies
