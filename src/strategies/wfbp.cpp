// WFBP: wait-free back-propagation. Each layer's gradient leaves as soon as it is ready, under the
// rest of backward.
// Zhang et al., "Poseidon", USENIX ATC 2017, arXiv:1706.03292.
// Cost per step: a start-up per layer; hides what fits under backward.
#include "strategies/builtin.h"
#include "strategies/gradient_average.h"

namespace riffle::strategies {
namespace {

class Wfbp : public Strategy {
 public:
  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& /*cost*/,
                                   const World& /*world*/) const override {
    return bucket_per_layer(trace);
  }
  [[nodiscard]] Program program(Step /*step*/, const World& world,
                                const BucketPlan& buckets) const override {
    return average_gradients(world, buckets, Start::bucket_ready);
  }
  [[nodiscard]] Traits traits(const World& /*world*/) const override { return {.exact = true}; }
};

}  // namespace

StrategyInfo wfbp() {
  return {
      .name = "wfbp",
      .summary = "each layer's gradient leaves as soon as it is ready",
      .paper = "Poseidon, arXiv:1706.03292",
      .exact = true,
      .page = {.idea = "Wait-free backpropagation: the gradient of a layer leaves as soon as "
                       "backward has computed it, while backward goes on with the layer before.",
               .when = "Few, large layers and a network of low latency. With many small layers "
                       "each pays the latency of a message of its own: use [mg-wfbp](mg-wfbp.md)."},
      .traffic = {ring_all_reduce_traffic()},
      .make = [](const Options&) { return std::make_unique<Wfbp>(); }};
}

}  // namespace riffle::strategies
