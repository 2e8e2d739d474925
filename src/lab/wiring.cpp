#include "lab/wiring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "riffle/error.h"

namespace riffle::lab {

namespace {

constexpr int largest_frame = 65'536;
constexpr int smallest_frame = 1'514;
// A queue holds at least twice a path's bandwidth-delay product, at least so much time of its
// link as switches have memory for, and at least a few first windows of TCP.
constexpr Seconds queue_time = milliseconds(10);
constexpr double least_queue = 128 << 10;
constexpr std::int64_t host_queue = std::int64_t{64} << 20;
constexpr double least_window = 512 << 10;
constexpr double most_window = 64 << 20;

Nanoseconds half(Seconds latency) {
  return std::llround(latency.count() / 2 * 1e9);
}

void add_link(Wiring& wiring, const std::string& name, const Link& link, bool of_host) {
  for (const char* way : {"up", "down"})
    wiring.ports.push_back({.name = fmt::format("{} {}", name, way),
                            .fair = of_host && way[0] == 'u',
                            .latency = half(link.latency),
                            .bandwidth = link.bandwidth.bytes_per_second});
}

std::vector<int> tree_path(const Cluster& cluster, const Wiring& wiring, int from, int to) {
  std::vector<int> up{2 * from};
  std::vector<int> down{2 * to + 1};
  int a = cluster.workers[static_cast<std::size_t>(from)].domain;
  int b = cluster.workers[static_cast<std::size_t>(to)].domain;
  while (a != b) {  // parents come before children
    if (a > b) {
      up.push_back(way_up(wiring, {.uplink = true, .index = a}));
      a = cluster.domains[static_cast<std::size_t>(a)].parent;
    } else {
      down.push_back(way_up(wiring, {.uplink = true, .index = b}) + 1);
      b = cluster.domains[static_cast<std::size_t>(b)].parent;
    }
  }
  up.insert(up.end(), down.rbegin(), down.rend());
  return up;
}

void add_paths(Wiring& wiring, const Cluster& cluster) {
  for (int from = 0; from < wiring.hosts; ++from)
    for (int to = 0; to < wiring.hosts; ++to)
      wiring.paths.push_back(from == to ? std::vector<int>{}
                                        : tree_path(cluster, wiring, from, to));
  // A measured pair is a wire of its own.
  for (const PairLink& pair : cluster.pairs) {
    wiring.ports.push_back({.name = fmt::format("worker{} to worker{}", pair.from, pair.to),
                            .fair = true,
                            .latency = 2 * half(pair.link.latency),
                            .bandwidth = pair.link.bandwidth.bytes_per_second});
    wiring.paths[static_cast<std::size_t>(pair.from * wiring.hosts + pair.to)] = {
        static_cast<int>(wiring.ports.size()) - 1};
  }
}

struct Extremes {
  double product = 0;  // bytes that fill the longest, widest path, there and back
  Nanoseconds shortest = std::numeric_limits<Nanoseconds>::max();  // that takes any time
};

Extremes extremes(const Wiring& wiring) {
  Extremes found;
  for (const auto& path : wiring.paths) {
    Nanoseconds latency = 0;
    double bandwidth = std::numeric_limits<double>::infinity();
    for (const int port : path) {
      latency += wiring.ports[static_cast<std::size_t>(port)].latency;
      bandwidth = std::min(bandwidth, wiring.ports[static_cast<std::size_t>(port)].bandwidth);
    }
    if (latency == 0) continue;
    found.shortest = std::min(found.shortest, latency);
    found.product = std::max(found.product, 2e-9 * static_cast<double>(latency) * bandwidth);
  }
  return found;
}

// Large pieces are cheap, but what is sent in one piece blocks a link for its whole time: an eighth
// of the shortest latency. A switch moves so many pieces a second, on one core, and many hosts
// would send more; then a piece takes up to a quarter.
Seconds piece_time(Nanoseconds shortest, int hosts) {
  constexpr double most_pieces = 32'000;
  constexpr Seconds least = microseconds(100);
  const Seconds latency(static_cast<double>(shortest) * 1e-9);
  return std::clamp(Seconds(hosts / most_pieces), std::max(least, latency / 8),
                    std::max(least, latency / 4));
}

int frame_of(double bandwidth, Seconds time) {
  return static_cast<int>(
      std::clamp<double>(time.count() * bandwidth, smallest_frame, largest_frame));
}

}  // namespace

int way_up(const Wiring& wiring, LinkId link) {
  return 2 * (link.uplink ? wiring.hosts + link.index : link.index);
}

Wiring wire(const Cluster& cluster, double dilate) {
  if (cluster.fit)
    usage_error("a lab needs links, and a fit has none: use flat:, racks: or sites:");
  if (cluster.size() > most_hosts)
    usage_error("{} hosts; a lab has at most {}", cluster.size(), most_hosts);
  Wiring wiring;
  wiring.hosts = cluster.size();
  for (int rank = 0; rank < cluster.size(); ++rank)
    add_link(wiring, fmt::format("worker{}", rank),
             cluster.workers[static_cast<std::size_t>(rank)].link, true);
  for (const Domain& domain : cluster.domains) add_link(wiring, domain.name, domain.uplink, false);
  add_paths(wiring, cluster);
  const Extremes found = extremes(wiring);
  const Seconds piece = piece_time(found.shortest, wiring.hosts);
  for (Port& port : wiring.ports) {
    port.quantum = frame_of(port.bandwidth, piece);
    port.limit =
        port.fair
            ? host_queue
            : static_cast<std::int64_t>(std::max(
                  {2 * found.product, queue_time.count() * dilate * port.bandwidth, least_queue}));
  }
  for (int host = 0; host < wiring.hosts; ++host)
    wiring.frame.push_back(
        static_cast<int>(wiring.ports[static_cast<std::size_t>(2 * host)].quantum));
  wiring.window =
      static_cast<std::int64_t>(std::clamp(2 * found.product, least_window, most_window));
  return wiring;
}

void make_room(Wiring& wiring, Cluster cluster, double dilate, const std::vector<Change>& changes) {
  for (const Change& change : changes)
    for (const LinkId id : links_of(change, cluster)) {
      const auto index = static_cast<std::size_t>(id.index);
      Link& link = id.uplink ? cluster.domains[index].uplink : cluster.workers[index].link;
      if (change.latency) link.latency = std::max(link.latency, *change.latency);
      if (change.bandwidth && *change.bandwidth > link.bandwidth)
        link.bandwidth = *change.bandwidth;
    }
  const Wiring largest = wire(cluster, dilate);
  wiring.window = largest.window;
  for (std::size_t i = 0; i < wiring.ports.size(); ++i)
    wiring.ports[i].limit = largest.ports[i].limit;
}

}  // namespace riffle::lab
