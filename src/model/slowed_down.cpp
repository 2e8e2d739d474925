#include "model/slowed_down.h"

namespace riffle::model {

Cluster slowed_down(Cluster cluster, double dilate, double shrink) {
  const auto slow = [&](Link& link) {
    link.latency *= dilate;
    link.bandwidth.bytes_per_second /= dilate * shrink;
  };
  for (WorkerSpec& worker : cluster.workers) slow(worker.link);
  for (Domain& domain : cluster.domains) slow(domain.uplink);
  for (PairLink& pair : cluster.pairs) slow(pair.link);
  if (cluster.fit) {
    cluster.fit->a *= dilate;
    cluster.fit->b.value *= dilate * shrink;
  }
  cluster.gamma.value *= dilate * shrink;
  cluster.optimizer_step *= dilate;
  return cluster;
}

}  // namespace riffle::model
