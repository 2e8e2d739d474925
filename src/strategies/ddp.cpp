// DDP: PyTorch's rule. Gradients fill buckets in backward order; a bucket is closed when it has
// reached its size, the first one early so that communication starts early.
// Li et al., "PyTorch Distributed", VLDB 2020, arXiv:2006.15704.
// Cost per step: a start-up per 25 MiB; hides what fits under backward.
#include "strategies/bucketing.h"
#include "strategies/builtin.h"
#include "strategies/gradient_average.h"

namespace riffle::strategies {
namespace {

class Ddp : public Strategy {
 public:
  Ddp(Bytes bucket, Bytes first) : bucket_(bucket), first_(first) {}

  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& /*cost*/,
                                   const World& /*world*/) const override {
    return make_buckets(trace, layers_by_size(trace, bucket_, first_));
  }
  [[nodiscard]] Program program(Step /*step*/, const World& world,
                                const BucketPlan& buckets) const override {
    return average_gradients(world, buckets, Start::bucket_ready);
  }
  [[nodiscard]] Traits traits(const World& /*world*/) const override { return {.exact = true}; }

 private:
  Bytes bucket_;
  Bytes first_;
};

}  // namespace

StrategyInfo ddp() {
  return {
      .name = "ddp",
      .summary = "PyTorch's buckets of 25 MiB, the first of 1 MiB",
      .paper = "arXiv:2006.15704",
      .exact = true,
      .options = {{"bucket", "25MiB", "a bucket is sent when it holds this much"},
                  {"first", "1MiB", "the first bucket of backward"}},
      .page = {.idea = "What PyTorch's DistributedDataParallel does: gradients are gathered into "
                       "buckets of 25 MiB, the first of 1 MiB, and each leaves when it is full.",
               .when = "To compare with what you have. [mg-wfbp](mg-wfbp.md) chooses the buckets "
                       "for your model and network instead."},
      .candidates = {"bucket=5MiB", "bucket=100MiB"},
      .traffic = {ring_all_reduce_traffic()},
      .make = [](const Options& options) {
        return std::make_unique<Ddp>(options.bytes("bucket"), options.bytes("first"));
      }};
}

}  // namespace riffle::strategies
