// A network that is known, measured again where it is likely to have changed, a part at a time.
#pragma once

#include "measure/network.h"

namespace riffle::measure {

struct CheckOptions {
  // The uplinks are likely to have changed: they are measured first, and where that explains it,
  // nothing else.
  bool uplinks = true;
  // That one part may take: latencies, or flows one way.
  Seconds slice{0.5};
  // Parts are: latencies and the first uplink both ways, then another uplink each.
  bool together = false;
  // Called by all ranks between two parts.
  std::function<void()> between = {};
};

// The cluster as it is now. Where racks are known and the latencies between them are as before, the
// load that each uplink carries; where that says nothing new, or there are no racks, everything as
// at the start (measure_network). All ranks take part and have the same result.
Cluster check_network(const Place& place, const Cluster& known, const CheckOptions& options);

// Racks and sites of a cluster that was measured, and the domain that each of them is.
struct KnownLevels {
  Levels parts;
  std::vector<int> domains;
};
KnownLevels levels_of(const Cluster& cluster, const Partition& hosts);

}  // namespace riffle::measure
