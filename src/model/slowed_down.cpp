#include "model/slowed_down.h"

#include <algorithm>
#include <cmath>

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
  cluster.piece = Bytes{
      std::max<std::int64_t>(std::llround(static_cast<double>(cluster.piece.count) / shrink), 1)};
  return cluster;
}

}  // namespace riffle::model
