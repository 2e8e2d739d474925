#include "riffle/cluster.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "riffle/error.h"

namespace riffle {

Seconds Cluster::latency(Rank from, Rank to) const {
  if (from == to || fit) return Seconds{};
  for (const PairLink& pair : pairs)
    if (pair.from == from && pair.to == to) return pair.link.latency;
  Seconds sum = (workers[from].link.latency + workers[to].link.latency) / 2;
  // Parents come before children, so the deeper index is never an ancestor of the other.
  int a = workers[from].domain;
  int b = workers[to].domain;
  while (a != b) {
    int& deeper = a > b ? a : b;
    sum += domains[deeper].uplink.latency / 2;
    deeper = domains[deeper].parent;
  }
  return sum;
}

std::vector<int> Cluster::ancestors(Rank rank) const {
  std::vector<int> path;
  if (fit) return path;
  for (int domain = workers[rank].domain; domain >= 0; domain = domains[domain].parent)
    path.push_back(domain);
  return path;
}

Cluster load_cluster(const std::string& spec_or_file) {
  const std::filesystem::path path(spec_or_file);
  std::error_code ignored;
  if (path.extension() == ".json" || std::filesystem::is_regular_file(path, ignored))
    return cluster_from_json(read_file(path), spec_or_file);
  return parse_cluster(spec_or_file);
}

}  // namespace riffle
