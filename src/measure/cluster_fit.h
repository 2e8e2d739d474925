// The cluster that explains what was measured between hosts, and how well it does. Pure.
#pragma once

#include <vector>

#include "measure/levels.h"
#include "riffle/world.h"

namespace riffle::measure {

// The uplink of a part while its hosts send to, and receive from, as many hosts beyond it.
struct UplinkLoad {
  Bandwidth out;
  Bandwidth in;
  // What the links of the hosts at both ends would carry.
  Bandwidth ends;
  int flows = 0;  // each way

  // Of both ways; the slower one where they differ.
  [[nodiscard]] Bandwidth rate() const;
  // The uplink itself was full; else it carries at least as much as it did here.
  [[nodiscard]] bool is_limit() const;
};

struct Measured {
  Partition hosts;             // their ranks
  std::vector<Link> inside;    // by host: the link that explains its collectives in shared memory
  PairTable<Seconds> latency;  // one way, between hosts
  PairTable<Bandwidth> rate;   // while all hosts were sending
  Levels levels;
  std::vector<UplinkLoad> uplinks;  // by part; the first means nothing
};

// How far the cluster is from what was measured, as shares of it.
struct Residual {
  double median = 0;
  double worst = 0;
};
struct ClusterFit {
  Cluster cluster;
  Residual latency;  // over all pairs
  Residual rate;     // over pairs that no uplink lies between
};

// Every host's own link and every uplink, such that the latencies of paths add up to what was
// measured, least absolute deviations; where pairs tell only the sum of two links, halves. Links
// that differ by no more than noise are the same. A host of several ranks is a domain of its own,
// whose uplink is its network link.
ClusterFit fit_cluster(const Measured& measured);

}  // namespace riffle::measure
