// Racks and slow hosts, from the links between all pairs of ranks. Pure: the same links give the
// same answer on every rank.
#pragma once

#include "measure/pairs.h"
#include "model/slow_host.h"

namespace riffle::measure {

// What a message of 256 KiB takes: latency and bandwidth as one number to compare links by.
Seconds weigh(const Link& link);

// A link of another kind weighs at least this many times as much, and the difference is no less
// than the noise of a quiet host.
constexpr double kGap = kSlowHost;
constexpr Seconds kNoise = microseconds(50);

struct Topology {
  Partition racks;  // of all ranks, slow ones too
  Group slow;       // far from everybody, their own rack included
  bool operator==(const Topology&) const = default;
};

// Where a host has several ranks, hosts are the racks. Else a host is slow when even its nearest
// neighbour is kGap times as far as is usual (the median over hosts), and the others fall into
// racks where links inside and across differ by kGap: the finest such division into racks of at
// least two. A slow host is counted to the rack it was in `before`, else to the nearest.
Topology infer_topology(const PairLinks& pairs, const Partition& hosts, const Partition& before);

// The ranks that speak for their racks when the links across are measured.
Group speakers(const Topology& topology);

// `pairs` gives the links inside, `across` (between the speakers, each uplink by itself) the
// uplinks.
Cluster cluster_of(const Topology& topology, const PairLinks& pairs, const PairLinks& across);

}  // namespace riffle::measure
