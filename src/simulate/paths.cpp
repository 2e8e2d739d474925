#include "simulate/paths.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "riffle/error.h"

namespace riffle::simulator {

Paths::Paths(const Cluster& cluster, const Links& links) : cluster_(cluster), links_(links) {
  // Workers of one class have the same place and the same link.
  std::map<std::tuple<int, double, double>, int> classes;
  for (const WorkerSpec& worker : cluster.workers) {
    const std::tuple key(worker.domain, worker.link.latency.count(),
                         worker.link.bandwidth.bytes_per_second);
    class_of_.push_back(classes.emplace(key, static_cast<int>(classes.size())).first->second);
  }
  class_size_.assign(classes.size(), 0);
  for (const int each : class_of_) ++class_size_[each];
  // Measured pairs have paths of their own; such workers cannot share a class's.
  for (const PairLink& pair : cluster.pairs) {
    set_apart(pair.from);
    set_apart(pair.to);
  }
}

void Paths::set_apart(Rank rank) {
  --class_size_[class_of_[rank]];
  class_of_[rank] = classes();
  class_size_.push_back(1);
}

int Paths::between(Rank from, Rank to) {
  const std::uint64_t key =
      (static_cast<std::uint64_t>(class_of_[from]) << 32) | static_cast<unsigned>(class_of_[to]);
  const auto [found, fresh] = known_.try_emplace(key, 0);
  if (fresh) found->second = make(from, to);
  return found->second;
}

int Paths::fan(Rank from, Rank to) {
  const std::uint64_t key = (std::uint64_t{1} << 63) | static_cast<unsigned>(class_of_[from]);
  const auto [found, fresh] = known_.try_emplace(key, 0);
  if (fresh) found->second = make(from, to);
  return found->second;
}

int Paths::make(Rank from, Rank to) {
  Path path;
  const auto pair = std::ranges::find_if(
      cluster_.pairs, [&](const PairLink& p) { return p.from == from && p.to == to; });
  if (pair != cluster_.pairs.end()) {
    path.ports = false;
    path.latency = pair->link.latency.count();
    path.cap = pair->link.bandwidth.bytes_per_second;
  } else {
    follow_tree(path, from, to);
  }
  if (static_cast<int>(path.shared.size()) + 2 > kMostLinks)
    usage_error("cluster: the path from worker {} to worker {} crosses more than {} links", from,
                to, kMostLinks);
  paths_.push_back(std::move(path));
  return static_cast<int>(paths_.size()) - 1;
}

void Paths::follow_tree(Path& path, Rank from, Rank to) const {
  path.latency_links = {Links::worker(from, kUp), Links::worker(to, kUp)};
  path.cap = std::min(links_.capacity(Links::worker(from, kUp)),
                      links_.capacity(Links::worker(to, kDown)));
  int a = cluster_.workers[from].domain;
  int b = cluster_.workers[to].domain;
  // Parents come before children, so the deeper index is never an ancestor of the other.
  while (a != b) {
    const bool leaving = a > b;
    int& deeper = leaving ? a : b;
    path.shared.push_back(links_.domain(deeper, leaving ? kUp : kDown));
    path.latency_links.push_back(links_.domain(deeper, kUp));
    deeper = cluster_.domains[deeper].parent;
  }
  for (const int link : path.latency_links) path.latency += links_.latency(link) / 2;
}

void Paths::add_latency(int link_up, double seconds) {
  for (Path& path : paths_)
    for (const int link : path.latency_links)
      if (link == link_up) path.latency += seconds;
}

}  // namespace riffle::simulator
