#include "riffle/simulate.h"

#include "simulate/pipeline.h"

namespace riffle {

Simulation simulate(const Trace& trace, const Cluster& cluster, const NamedStrategy& strategy) {
  const World world(cluster);
  const CostModel cost(cluster);
  const BucketPlan buckets = strategy->buckets(trace, cost, world);
  const Program program = strategy->program(0, world, buckets);
  const PipelineTimes times = pipeline(trace, cost, buckets, program);

  Simulation result;
  result.strategy = strategy.name;
  result.options = strategy.options;
  result.workers = cluster.size();
  result.iteration = times.iteration;
  result.compute = trace.compute();
  result.exposed_communication = times.iteration - result.compute;
  result.speedup = result.workers * (result.compute / times.iteration);
  result.efficiency = result.speedup / result.workers;
  for (std::size_t i = 0; i < program.exchanges.size(); ++i) {
    const Exchange& exchange = program.exchanges[i];
    const Bucket& bucket = buckets[exchange.bucket];
    const Bytes size = wire_bytes(bucket.bytes, trace.dtype, exchange.wire);
    const Traffic traffic = cost.traffic(exchange, size);
    result.bytes_per_worker += traffic.bytes;
    result.messages_per_worker += traffic.messages;
    SimulatedBucket shown{{}, size, times.starts[i], times.ends[i]};
    for (int layer = bucket.first; layer <= bucket.last; ++layer)
      shown.layers.push_back(trace.layers[layer].name);
    result.buckets.push_back(std::move(shown));
  }
  return result;
}

}  // namespace riffle
