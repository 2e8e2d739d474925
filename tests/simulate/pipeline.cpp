#include "simulate/pipeline.h"

#include <algorithm>

#include "riffle/error.h"

namespace riffle {

PipelineTimes pipeline(const Trace& trace, const CostModel& cost, const BucketPlan& buckets,
                       const Program& program) {
  // tau_b: when each layer's gradient is ready; backward follows forward, from the last layer on.
  std::vector<Seconds> ready(trace.layers.size());
  Seconds now = trace.forward();
  for (std::size_t i = trace.layers.size(); i-- > 0;) ready[i] = now += trace.layers[i].backward;
  const Seconds backward_done = now;

  PipelineTimes times;
  Seconds lane_free{};
  for (const Exchange& exchange : program.exchanges) {
    const bool fits = exchange.payload == Payload::gradient && exchange.lane == 0 &&
                      exchange.due == before_step() &&
                      exchange.group.size() == cost.cluster().size();
    if (!fits) usage_error("the recurrences do not cover: {}", print(exchange));
    const Bucket& bucket = buckets.at(static_cast<std::size_t>(exchange.bucket));
    const Seconds may = exchange.start == Start::bucket_ready
                            ? ready[static_cast<std::size_t>(bucket.first)]
                            : backward_done;
    const Seconds start = std::max(lane_free, may);  // tau_c
    lane_free = start + cost.time(exchange, wire_bytes(bucket.bytes, trace.dtype, exchange.wire));
    times.starts.push_back(start);
    times.ends.push_back(lane_free);
  }
  const Seconds optimizer = cost.cluster().optimizer_step.count() > 0
                                ? cost.cluster().optimizer_step
                                : trace.optimizer_step;
  times.iteration = std::max(backward_done, lane_free) + optimizer;
  return times;
}

}  // namespace riffle
