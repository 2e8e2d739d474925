// The one measurement of a network: what sessions plan for and `riffle probe` prints.
#pragma once

#include <functional>

#include "measure/cluster_fit.h"
#include "measure/echoes.h"
#include "measure/place.h"

namespace riffle::measure {

// Ranks by host, in the order of their first rank.
Partition by_host(const Engine& engine);

// A rack per host (flat where there is one host), with links of ordinary speed.
Cluster assumed_cluster(const Engine& engine);

struct NetworkOptions {
  // Racks that were known; see find_levels.
  Partition before = {};
  // Of pairs that carry bulk data at once: all that there are, or so many.
  int most_rounds = 63;
  // That a flow may take until its rate has settled.
  Seconds most_time{2.0};
  // After which no further round of pairs begins; a quarter of it is for latencies.
  Seconds budget{120};
  // Hears what is being measured, on every rank.
  std::function<void(const std::string&)> progress = {};
};

// For sessions, which want to begin: some seconds for any number of hosts.
NetworkOptions quick_look(Partition before);

struct Network {
  Measured measured;
  ClusterFit fit;
  Group speakers;  // the first rank of each host, which measures for it
  PairTable<Echo> echoes;
  Seconds flow_time{};  // that flows took to settle
};

// In this order: the link inside each host of several ranks, by timed collectives (calls.h); the
// latency of every pair of hosts, by messages that bounce (echoes.h); the rate of every pair, all
// hosts sending and receiving at once, in rounds of disjoint pairs (flows.h); racks and sites from
// both (levels.h); every uplink, loaded by all hosts below it; the cluster that explains it all
// (cluster_fit.h). All ranks take part and have the same result.
Network measure_network(const Place& place, const NetworkOptions& options = {});

}  // namespace riffle::measure
