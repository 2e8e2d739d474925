// Gossip: one message each way per step. At step t every worker averages with the worker 2^k places
// back, k = t mod ceil(log2 N): the one-peer exponential graph.
// Assran et al., "Stochastic Gradient Push", ICML 2019, arXiv:1811.10792; Ying et al.,
// "Exponential graph is provably efficient", NeurIPS 2021, arXiv:2110.13363.
// Cost per step: alpha + M*beta, under the rest of backward (adapt-then-combine) or under the whole
// next step (combine-then-adapt); the exact mean after log2 N steps where N is a power of two.
#include <bit>

#include "strategies/builtin.h"
#include "strategies/merge.h"
#include "strategies/weight_average.h"

namespace riffle::strategies {
namespace {

class Gossip : public Strategy {
 public:
  explicit Gossip(const Options& options)
      : mixing_(weight_mixing(options)), wire_(options.wire()) {}

  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& cost,
                                   const World& world) const override {
    if (mixing_.order == MixingOrder::combine_then_adapt) return one_bucket(trace);
    const Curve& curve = cost.curve(world.ranks(), Collective::shift, Algorithm::automatic, 1);
    return make_buckets(trace, merge_optimal(ready_layers(trace, wire_), curve));
  }
  [[nodiscard]] Program program(Step step, const World& world,
                                const BucketPlan& buckets) const override {
    Program program;
    average_weights(program, {world.ranks()}, buckets, mixing_);
    for (Exchange& exchange : program.exchanges) {
      exchange.collective = Collective::shift;
      exchange.shift = 1 << (step % rounds(world));
    }
    return program;
  }
  [[nodiscard]] Traits traits(const World& world) const override {
    return {.period = rounds(world), .staleness = mixing_.staleness(), .mixed = Payload::weight};
  }

 private:
  static int rounds(const World& world) {
    return std::max(1, static_cast<int>(std::bit_width(static_cast<unsigned>(world.size() - 1))));
  }

  WeightMixing mixing_;
  Wire wire_;
};

}  // namespace

StrategyInfo gossip() {
  return {
      .name = "gossip",
      .summary = "average with one peer per step, 1, 2, 4, ... places away",
      .paper = "arXiv:1811.10792, arXiv:2110.13363",
      .options = {order_option(), mix_state_option()},
      .page = {.idea =
                   "In step t every worker averages with one peer, 1, 2, 4, ... places away. After "
                   "log2 N steps without learning all would agree exactly (N a power of two).\n\n"
                   "Weights are mixed, in one of two orders. `adapt-then-combine` updates and "
                   "sends bucket by bucket while backward still runs. `combine-then-adapt` lets "
                   "the weights travel under the whole next step; it hides more, works with "
                   "clipping and mixed precision as it is, and halves the usable learning rate.",
               .when =
                   "Many workers on a flat network: one message each way per step, whatever N is. "
                   "On racks most messages cross the uplinks; [ds-sync](ds-sync.md) or "
                   "[sesgd](sesgd.md) are kinder there. Loses accuracy when workers' data differ."},
      .traffic = {{.bytes = "1", .messages = "B"}},
      .make = [](const Options& options) { return std::make_unique<Gossip>(options); }};
}

}  // namespace riffle::strategies
