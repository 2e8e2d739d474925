// The ports of a cluster's network, and the way through them from host to host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/packet.h"
#include "riffle/change.h"

namespace riffle::lab {

// One direction of a link: what sends into it, and its queue.
struct Port {
  std::string name;          // "worker3 up", "rack1 down", "worker0 to worker1" (a measured pair)
  bool fair = false;         // flows share it fairly (a host sends), else first in, first out
  Nanoseconds latency = 0;   // of the way to the next port
  double bandwidth = 0;      // payload bytes per second
  std::int64_t limit = 0;    // bytes that may wait; what comes then is dropped
  std::int64_t quantum = 0;  // of a turn of a flow; also the size of a piece of others' traffic
};

struct Wiring {
  int hosts = 0;
  std::vector<Port> ports;
  std::vector<std::vector<int>> paths;  // [from * hosts + to]: ports in order
  std::vector<int> frame;               // of each host: bytes that may leave in one piece (TSO)
  std::int64_t window = 0;              // bytes in flight that fill every path

  [[nodiscard]] const std::vector<int>& path(int from, int to) const {
    return paths[static_cast<std::size_t>(from) * static_cast<std::size_t>(hosts) +
                 static_cast<std::size_t>(to)];
  }
};

// A link's way up is an even port, its way down the next.
int way_up(const Wiring& wiring, LinkId link);

// `dilate` as the cluster was slowed down (model/slowed_down.h): queues are as deep, in bytes, as
// those of the true one.
Wiring wire(const Cluster& cluster, double dilate);
// Queues and windows that fit the network also as it is after changes of links (slowed down as the
// cluster is).
void make_room(Wiring& wiring, Cluster cluster, double dilate, const std::vector<Change>& changes);

}  // namespace riffle::lab
