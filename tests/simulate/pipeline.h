// An independent reference for the simulator.
//
// The pipeline recurrences of WFBP and MG-WFBP: one lane, exchanges over the whole world that start
// when their bucket is ready, and an optimizer that waits for the last of them.
#pragma once

#include "riffle/cost.h"
#include "riffle/program.h"
#include "riffle/strategy.h"

namespace riffle {

struct PipelineTimes {
  Seconds iteration{};
  std::vector<Seconds> starts;  // of each exchange, in program order, from the start of forward
  std::vector<Seconds> ends;
};

// UsageError when an exchange is not of that kind.
PipelineTimes pipeline(const Trace& trace, const CostModel& cost, const BucketPlan& buckets,
                       const Program& program);

}  // namespace riffle
