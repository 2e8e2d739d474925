// Rounds: all workers train alone for tau steps, then groups average the whole model at once.
#pragma once

#include "riffle/strategy.h"

namespace riffle {

class Rounds : public Strategy {
 public:
  // Reads `tau` and `mix_state`. `worth`: of a step, where the merge takes some of it.
  Rounds(const Options& options, Merge merge, double worth = 1);

  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& cost,
                                   const World& world) const override;
  [[nodiscard]] Program program(Step step, const World& world,
                                const BucketPlan& buckets) const override;
  [[nodiscard]] Traits traits(const World& world) const override;

 protected:
  // Who averages at the end of the round: all.
  [[nodiscard]] virtual Partition groups(Step round, const World& world) const;

 private:
  int tau_;
  Merge merge_;
  double worth_;
  bool mix_state_;
};

}  // namespace riffle
