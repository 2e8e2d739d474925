#include "strategies/weight_average.h"

namespace riffle {

WeightMixing weight_mixing(const Options& options) {
  const bool adapt_first = options.choice("order") == "adapt-then-combine";
  return {adapt_first ? MixingOrder::adapt_then_combine : MixingOrder::combine_then_adapt,
          options.boolean("mix_state")};
}

OptionInfo order_option() {
  return {"order", "adapt-then-combine|combine-then-adapt",
          "average updated weights under backward, or the step's weights under the whole next one"};
}

OptionInfo mix_state_option() {
  return {"mix_state", "false|true", "average the optimizer's state too"};
}

void average_weights(Program& program, const Partition& groups, const BucketPlan& buckets,
                     const WeightMixing& mixing) {
  const bool adapt_first = mixing.order == MixingOrder::adapt_then_combine;
  for (const Bucket& bucket : buckets)
    for (const Group& group : groups)
      program.add({.bucket = bucket.id,
                   .payload = Payload::weight,
                   .group = group,
                   .start = adapt_first ? Start::bucket_stepped : Start::step_done,
                   .due = adapt_first ? before_forward() : before_step(1),
                   .merge = adapt_first ? replace() : correct()});
  if (mixing.state) add_state(program, before_step(1), replace());
}

void average_round(Program& program, const Partition& groups, const BucketPlan& buckets, Due due,
                   Merge merge) {
  for (const Bucket& bucket : buckets)
    for (const Group& group : groups)
      program.add({.bucket = bucket.id,
                   .payload = Payload::weight,
                   .group = group,
                   .start = Start::step_done,
                   .due = due,
                   .merge = merge});
}

TrafficFormula ring_round_traffic() {
  return {.options = "algorithm=ring", .bytes = "2(N-1)/N/tau", .messages = "2(N-1)/tau*B"};
}

void add_state(Program& program, Due due, Merge merge) {
  // After all weights in issue order: the state is not needed before the next update.
  const std::vector<Exchange> weights = program.exchanges;
  for (Exchange exchange : weights) {
    if (exchange.payload != Payload::weight) continue;
    exchange.payload = Payload::state;
    exchange.due = due;
    exchange.merge = merge;
    program.add(std::move(exchange));
  }
}

}  // namespace riffle
