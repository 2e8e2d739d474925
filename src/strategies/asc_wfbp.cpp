// ASC-WFBP: two all-reduces may travel at once. A layer waits for the next one only when both lanes
// are busy; else its message starts beside the one that is under way.
// Shi, Chu, Li, "Exploiting Simultaneous Communications to Accelerate Data Parallel Distributed
// Deep Learning", INFOCOM 2021.
// Cost per message: a + b*M alone, a + 1.5*b*M beside another.
#include "strategies/builtin.h"
#include "strategies/gradient_average.h"
#include "strategies/merge.h"

namespace riffle::strategies {
namespace {

class AscWfbp : public Strategy {
 public:
  explicit AscWfbp(Wire wire) : wire_(wire) {}

  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& cost,
                                   const World& world) const override {
    const Bytes all = wire_bytes(trace.bytes(), trace.dtype, wire_);
    const LinearCost line = cost.curve(world.ranks()).piece(all).cost;
    return make_buckets(trace, merge_two_lanes(ready_layers(trace, wire_), line));
  }
  [[nodiscard]] Program program(Step /*step*/, const World& world,
                                const BucketPlan& buckets) const override {
    Program program = average_gradients(world, buckets, Start::bucket_ready);
    for (Exchange& exchange : program.exchanges) exchange.lane = exchange.bucket % 2;
    return program;
  }
  [[nodiscard]] Traits traits(const World& /*world*/) const override { return {.exact = true}; }

 private:
  Wire wire_;
};

}  // namespace

StrategyInfo asc_wfbp() {
  return {.name = "asc-wfbp",
          .summary = "merged gradients on two lanes at once",
          .paper = "INFOCOM 2021",
          .exact = true,
          .page = {.idea = "Merged gradients on two lanes at once: while one all-reduce waits for "
                           "latency, another uses the bandwidth.",
                   .when = "High latency with bandwidth to spare, where one all-reduce alone "
                           "cannot fill the link."},
          .traffic = {ring_all_reduce_traffic()},
          .make = [](const Options& options) { return std::make_unique<AscWfbp>(options.wire()); }};
}

}  // namespace riffle::strategies
