// A step's program, compiled for the simulator: what each worker does on each lane, in order.
#pragma once

#include <memory>
#include <vector>

#include "riffle/cost.h"
#include "riffle/strategy.h"
#include "simulate/schedule.h"

namespace riffle {

struct PlannedExchange {
  Exchange exchange;
  Bytes size;                                // that travel
  std::shared_ptr<const Schedule> schedule;  // none: it has only a cost
  double seconds = 0;                        // that cost
  bool one_at_a_time = false;                // a fit
};

struct StepPlan {
  struct Item {
    int exchange = 0;
    int member = 0;
    int after = -1;  // the item of the same worker whose result it starts from
  };

  std::vector<PlannedExchange> exchanges;  // without groups of one
  int lanes = 1;
  // Items of worker w on lane l: first[w * lanes + l] .. first[w * lanes + l + 1].
  std::vector<int> first;
  std::vector<Item> items;
  bool stepped = false;  // the optimizer steps bucket by bucket
  bool chained = false;  // some item has an `after`
  // Buckets whose update waits for a gradient that is due in a later forward, and when.
  std::vector<std::pair<int, int>> postponed;  // bucket, steps later
  double bytes = 0;                            // sent by all workers
  double messages = 0;
};

StepPlan compile_step(const Program& program, const BucketPlan& buckets, DType dtype,
                      const CostModel& cost, ScheduleCache& schedules);

}  // namespace riffle
