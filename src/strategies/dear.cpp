// DeAR: an all-reduce is a reduce-scatter and an all-gather. The first hides under backward, the
// second under the next forward, where each bucket is updated just before it is used.
// Zhang et al., "DeAR: Accelerating Distributed Deep Learning with Fine-Grained All-Reduce
// Pipelining", ICDCS 2023, arXiv:2302.12445.
// Cost per step: two halves of T(M), one under backward and one under forward.
#include <algorithm>

#include "strategies/bucketing.h"
#include "strategies/builtin.h"
#include "strategies/gradient_average.h"
#include "strategies/merge.h"

namespace riffle::strategies {
namespace {

class Dear : public Strategy {
 public:
  explicit Dear(const Options& options)
      : optimal_(options.text("bucket") == "optimal"),
        size_(optimal_ ? Bytes{} : options.bytes("bucket")),
        wire_(options.wire()) {}

  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& cost,
                                   const World& world) const override {
    if (!optimal_) return make_buckets(trace, layers_by_size(trace, size_, size_));
    std::vector<Seconds> needed;
    Seconds rest{};
    for (std::size_t i = trace.layers.size(); i-- > 0;)
      needed.push_back(rest += trace.layers[i].forward);
    return make_buckets(trace, merge_split(ready_layers(trace, wire_), needed,
                                           cost.curve(world.ranks(), Collective::reduce_scatter),
                                           cost.curve(world.ranks(), Collective::all_gather)));
  }
  [[nodiscard]] Program program(Step /*step*/, const World& world,
                                const BucketPlan& buckets) const override {
    Program program;
    for (const Bucket& bucket : buckets)
      program.add({.bucket = bucket.id,
                   .payload = Payload::gradient,
                   .group = world.ranks(),
                   .collective = Collective::reduce_scatter,
                   .start = Start::bucket_ready,
                   .due = before_step(),
                   .merge = replace()});
    // The first layers are used first.
    for (std::size_t i = buckets.size(); i-- > 0;)
      program.add({.bucket = buckets[i].id,
                   .payload = Payload::gradient,
                   .group = world.ranks(),
                   .collective = Collective::all_gather,
                   .start = Start::step_done,
                   .due = before_forward(),
                   .merge = replace()});
    return program;
  }
  [[nodiscard]] Traits traits(const World& /*world*/) const override { return {.exact = true}; }

 private:
  bool optimal_;
  Bytes size_;
  Wire wire_;
};

}  // namespace

StrategyInfo dear() {
  return {.name = "dear",
          .summary = "reduce-scatter under backward, all-gather under the next forward",
          .paper = "arXiv:2302.12445",
          .exact = true,
          .options = {{"bucket", "25MiB|optimal", "a bucket is sent when it holds this much"}},
          .page = {.idea = "An all-reduce is a reduce-scatter and an all-gather. The first half "
                           "runs under backward; the second half runs under the *next forward*, "
                           "layer by layer, just before each layer is used.",
                   .when = "When backward alone is too short to hide communication, and the "
                           "mathematics must not change. The update of a layer happens in the next "
                           "forward, so what reads weights between steps (`state_dict`, "
                           "evaluation) waits for it first; the session does that by itself."},
          .traffic = {ring_all_reduce_traffic()},
          .make = [](const Options& options) { return std::make_unique<Dear>(options); }};
}

}  // namespace riffle::strategies
