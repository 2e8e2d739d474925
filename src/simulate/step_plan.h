// A step's program, compiled for the simulator: what each worker does on each lane, in order.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "riffle/cost.h"
#include "schedule/points.h"
#include "simulate/message_plan.h"

namespace riffle::simulator {

struct PlannedExchange {
  Exchange exchange;
  schedule::Point starts{};
  Bytes size;                                   // that travel
  std::shared_ptr<const MessagePlan> messages;  // none: it has only a cost
  double seconds = 0;                           // that cost
  bool one_at_a_time = false;                   // a fit
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
  bool by_bucket = false;  // the optimizer steps bucket by bucket
  bool chained = false;    // some item has an `after`
  // Buckets whose update is postponed to the merge of their gradient.
  std::vector<std::pair<int, Due>> postponed;
  double bytes = 0;  // sent by all workers
  double messages = 0;

  [[nodiscard]] bool postpones(int bucket) const {
    return std::ranges::find(postponed, bucket, &std::pair<int, Due>::first) != postponed.end();
  }
};

StepPlan compile_step(const Program& program, const BucketPlan& buckets, DType dtype,
                      const CostModel& cost, MessagePlans& plans);

}  // namespace riffle::simulator
