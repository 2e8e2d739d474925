// What asp and ssp share: every worker serves a shard of the weights and works with all of them.
#pragma once

#include "strategies/bucketing.h"

namespace riffle {

class ParameterServer : public Strategy {
 public:
  // `ahead`: as in an exchange. UsageError for a wire or an algorithm that serving has not.
  ParameterServer(const Options& options, int ahead);

  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& cost,
                                   const World& world) const override;
  [[nodiscard]] Program program(Step step, const World& world,
                                const BucketPlan& buckets) const override;
  [[nodiscard]] Traits traits(const World& world) const override;

 private:
  Bucketing bucketing_;
  int ahead_;
};

// Both pages say how this differs from a server that has the optimizer.
std::string local_optimizer_section();
TrafficFormula served_traffic();

}  // namespace riffle
