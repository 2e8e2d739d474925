// BSP: one all-reduce of all gradients when backward is done. The textbook baseline.
// Valiant, "A bridging model for parallel computation", 1990.
// Cost per step: T(M) after backward, nothing hidden.
#include "strategies/builtin.h"
#include "strategies/gradient_average.h"

namespace riffle::strategies {
namespace {

class Bsp : public Strategy {
 public:
  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& /*cost*/,
                                   const World& /*world*/) const override {
    return one_bucket(trace);
  }
  [[nodiscard]] Program program(Step /*step*/, const World& world,
                                const BucketPlan& buckets) const override {
    return average_gradients(world, buckets, Start::backward_done);
  }
  [[nodiscard]] Traits traits(const World& /*world*/) const override { return {.exact = true}; }
};

}  // namespace

StrategyInfo bsp() {
  return {
      .name = "bsp",
      .summary = "one all-reduce of all gradients after backward",
      .paper = "Valiant 1990",
      .exact = true,
      .page = {.idea = "Bulk-synchronous parallel: every worker computes its gradient, one "
                       "all-reduce averages all of them, everybody makes the same update.",
               .when = "As the reference. Nothing is hidden: a step costs computing plus "
                       "communication. Every other exact strategy gives the same weights, sooner."},
      .traffic = {ring_all_reduce_traffic()},
      .make = [](const Options&) { return std::make_unique<Bsp>(); }};
}

}  // namespace riffle::strategies
