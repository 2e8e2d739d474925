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
  return {
      .name = "hierarchical",
      .summary = "one all-reduce after backward, inside racks first, then across",
      .paper = "Thakur et al. 2005",
      .exact = true,
      .page = {.idea =
                   "One all-reduce after backward, in two levels: inside each rack first, then "
                   "across racks, then inside again, so that each uplink carries every byte once.",
               .when = "Racks or hosts whose uplink is much slower than what is inside them, when "
                       "the mathematics must stay that of synchronous SGD."},
      .traffic = {{.bytes = "2(K-1)/K + 2(R-1)/(R*K)",
                   .messages = "2(K-1) + 2*log2 R + 2(R-1-log2 R)/R",
                   .note = "rings in racks, halving-doubling across; the last term of the "
                           "messages: runs of blocks that wrap around go in two"}},
      .make = [](const Options& options) {
        if (options.given("algorithm") && options.algorithm() != Algorithm::two_level)
          usage_error("{}: hierarchical is two-level; bsp takes any algorithm",
                      options.where("algorithm"));
        return std::make_unique<Hierarchical>();
      }};
}

}  // namespace riffle::strategies
