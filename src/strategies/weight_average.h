// What strategies share that mix weights instead of gradients: the exchanges of one step for a
// partition of the world.
#pragma once

#include "riffle/strategy.h"

namespace riffle {

// When the group mean is taken and joined.
enum class MixingOrder {
  // The mean of updated weights, bucket by bucket under the rest of backward; before the next
  // forward. The optimizer steps per bucket.
  adapt_then_combine,
  // The mean of this step's weights travels under the whole next step and joins at its update by
  // the delta rule. The optimizer steps once.
  combine_then_adapt,
};

struct WeightMixing {
  MixingOrder order = MixingOrder::adapt_then_combine;
  bool state = false;  // the optimizer's state too; it is not used before the next update
  // Steps that a mean is late (Traits::staleness).
  [[nodiscard]] int staleness() const { return order == MixingOrder::combine_then_adapt ? 1 : 0; }
};
// Reads `order` and `mix_state`.
WeightMixing weight_mixing(const Options& options);
OptionInfo order_option();
OptionInfo mix_state_option();

// Every bucket averaged in every group.
void average_weights(Program& program, const Partition& groups, const BucketPlan& buckets,
                     const WeightMixing& mixing);

// These buckets averaged in every group at the end of a step, for strategies with rounds.
void average_round(Program& program, const Partition& groups, const BucketPlan& buckets, Due due,
                   Merge merge);
// What they send on rings, once in `tau` steps.
TrafficFormula ring_round_traffic();

// A copy of each weight exchange for the optimizer's state, merged by `merge` at `due`.
void add_state(Program& program, Due due, Merge merge);

}  // namespace riffle
