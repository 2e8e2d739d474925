// Hierarchical: bsp with a two-level all-reduce. Members of a rack share the vector out, owners of
// the same share all-reduce it across racks, then hand it back.
// Thakur, Rabenseifner, Gropp, IJHPCA 2005; "H-RR" of later papers.
// Cost per step: an uplink carries 2(R-1)/R of the model each way; nothing hidden.
#include "riffle/error.h"
#include "strategies/builtin.h"
#include "strategies/gradient_average.h"

namespace riffle::strategies {
namespace {

class Hierarchical : public Strategy {
 public:
  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& /*cost*/,
                                   const World& /*world*/) const override {
    return one_bucket(trace);
  }
  [[nodiscard]] Program program(Step /*step*/, const World& world,
                                const BucketPlan& buckets) const override {
    Program program = average_gradients(world, buckets, Start::backward_done);
    for (Exchange& exchange : program.exchanges) exchange.algorithm = Algorithm::two_level;
    return program;
  }
  [[nodiscard]] Traits traits(const World& /*world*/) const override { return {.exact = true}; }
};

}  // namespace

StrategyInfo hierarchical() {
  return {.name = "hierarchical",
          .summary = "one all-reduce after backward, inside racks first, then across",
          .paper = "Thakur et al. 2005",
          .exact = true,
          .options = {},
          .make = [](const Options& options) {
            if (options.given("algorithm") && options.algorithm() != Algorithm::two_level)
              usage_error("{}: hierarchical is two-level; bsp takes any algorithm",
                          options.where("algorithm"));
            return std::make_unique<Hierarchical>();
          }};
}

}  // namespace riffle::strategies
