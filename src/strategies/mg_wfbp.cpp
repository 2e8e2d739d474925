// MG-WFBP: layers are merged into messages, so that start-ups are few and communication still
// hides under backward. merge=optimal is the exact optimum; merge=paper the published greedy rule,
// which is up to 1.4x slower on published traces.
// Shi, Chu, Li, INFOCOM 2019, arXiv:1811.11141; TPDS 2021, arXiv:1912.09268.
// Cost per step: F(L) of merge.h; never worse than wfbp, single or ddp.
#include "strategies/builtin.h"
#include "strategies/gradient_average.h"
#include "strategies/merge.h"

namespace riffle::strategies {
namespace {

class MgWfbp : public Strategy {
 public:
  MgWfbp(bool paper, Wire wire) : paper_(paper), wire_(wire) {}

  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& cost,
                                   const World& world) const override {
    const Curve& curve = cost.curve(world.ranks());
    const auto layers = ready_layers(trace, wire_);
    if (!paper_) return make_buckets(trace, merge_optimal(layers, curve));
    // The published rule knows one line: the one that holds for the whole model.
    return make_buckets(
        trace,
        merge_paper(layers, curve.piece(wire_bytes(trace.bytes(), trace.dtype, wire_)).cost));
  }
  [[nodiscard]] Program program(Step /*step*/, const World& world,
                                const BucketPlan& buckets) const override {
    return average_gradients(world, buckets, Start::bucket_ready);
  }
  [[nodiscard]] Traits traits(const World& /*world*/) const override { return {.exact = true}; }

 private:
  bool paper_;
  Wire wire_;
};

}  // namespace

StrategyInfo mg_wfbp() {
  return {
      .name = "mg-wfbp",
      .summary = "layers merged into messages that hide best under backward",
      .paper = "arXiv:1811.11141, arXiv:1912.09268",
      .exact = true,
      .options = {{"merge", "optimal|paper", "the exact optimum, or the published greedy rule"}},
      .page = {.idea =
                   "Merged-gradient WFBP: neighbouring layers are merged into one message where "
                   "that saves more latency than it delays. `merge=optimal` finds the best of all "
                   "contiguous merges by dynamic programming; `merge=paper` is the published "
                   "greedy rule, which is not always optimal ([merging gradients](../mg-wfbp.md)).",
               .when = "The default where the mathematics must not change: `auto` takes it unless "
                       "you name a cluster. Buckets are made from modelled times, and once more "
                       "from measured times after five steps."},
      .traffic = {ring_all_reduce_traffic()},
      .make = [](const Options& options) {
        return std::make_unique<MgWfbp>(options.choice("merge") == "paper", options.wire());
      }};
}

}  // namespace riffle::strategies
