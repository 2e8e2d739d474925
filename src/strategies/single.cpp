// Single: all layers in one contiguous buffer that leaves when its last gradient is ready (the
// layout of SyncEASGD, the "single-layer" baseline of MG-WFBP).
// You, Buluc, Demmel, "Scaling deep learning on GPU and Knights Landing clusters", SC 2017.
// Cost per step: T(M) after backward, one start-up for the whole model.
#include "strategies/builtin.h"
#include "strategies/gradient_average.h"

namespace riffle::strategies {
namespace {

class Single : public Strategy {
 public:
  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& /*cost*/,
                                   const World& /*world*/) const override {
    return one_bucket(trace);
  }
  [[nodiscard]] Program program(Step /*step*/, const World& world,
                                const BucketPlan& buckets) const override {
    return average_gradients(world, buckets, Start::bucket_ready);
  }
  [[nodiscard]] Traits traits(const World& /*world*/) const override { return {.exact = true}; }
};

}  // namespace

StrategyInfo single() {
  return {
      .name = "single",
      .summary = "all gradients in one buffer, sent when the last one is ready",
      .paper = "SyncEASGD, SC 2017",
      .exact = true,
      .page =
          {.idea =
               "All gradients lie in one buffer (SyncEASGD's layout) that leaves when the last "
               "gradient, that of the first layer, is ready. One message, so one start-up latency.",
           .when = "Small models on networks of high latency, where even two messages are one too "
                   "many."},
      .traffic = {ring_all_reduce_traffic()},
      .make = [](const Options&) { return std::make_unique<Single>(); }};
}

}  // namespace riffle::strategies
