#include "strategies/rounds.h"

#include "strategies/weight_average.h"

namespace riffle {

Rounds::Rounds(const Options& options, Merge merge, double worth)
    : tau_(static_cast<int>(options.integer("tau", 1))),
      merge_(merge),
      worth_(worth),
      mix_state_(options.boolean("mix_state")) {}

BucketPlan Rounds::buckets(const Trace& trace, const CostModel& /*cost*/,
                           const World& /*world*/) const {
  return one_bucket(trace);
}

Program Rounds::program(Step step, const World& world, const BucketPlan& buckets) const {
  Program program;
  if (step % tau_ != tau_ - 1) return program;
  average_round(program, groups(step / tau_, world), buckets, before_forward(), merge_);
  if (mix_state_) add_state(program, before_step(1), replace());
  return program;
}

Partition Rounds::groups(Step /*round*/, const World& world) const {
  return {world.ranks()};
}

Traits Rounds::traits(const World& /*world*/) const {
  return {.period = tau_, .mixed = Payload::weight, .effective_step = worth_};
}

}  // namespace riffle
