// Random clusters for the comparison with SimGrid: the seeds are the cases.
#pragma once

#include "pattern/pattern.h"
#include "riffle/cluster.h"

namespace riffle::simgrid {

constexpr int kSeeds = 10;
constexpr double kBytes = 1e7;

// Two to five racks of two to nine workers, links of random latency and bandwidth.
Cluster random_cluster(std::uint64_t seed);
// The most messages of one round that cross one uplink in one direction.
int most_on_one_uplink(const pattern::Pattern& pattern, const Cluster& cluster);

// How SimGrid treats latency. Its own flow model (CM02) makes a flow's share of a link inversely
// proportional to its round trip, as TCP tends to; without latency in the links it shares plainly,
// and the members pay the path's latency when a message has left, as ours do.
enum class Sharing { plain, by_round_trip };

// When the members have the result of an all-reduce of kBytes that all start at time zero, mean
// over them, by SimGrid.
struct PeerResult {
  double mean_end = 0;
  double wall = 0;  // seconds that it took, without building the platform
};
PeerResult run_peer(const pattern::Pattern& pattern, const Cluster& cluster, Sharing sharing);

}  // namespace riffle::simgrid
