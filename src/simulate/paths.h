// Ways through the network. Workers of one domain with equal links form a class, and flows between
// the same two classes have one path.
#pragma once

#include <unordered_map>
#include <vector>

#include "simulate/links.h"

namespace riffle::simulator {

struct Path {
  double latency = 0;
  double cap = 0;           // what the workers' own links allow
  int stream = -1;          // that its flows share
  bool ports = true;        // it uses the workers' links (a measured pair is a wire of its own)
  std::vector<int> shared;  // uplinks on the way
  std::vector<int> latency_links;  // links (their way up) that add half their latency
};

class Paths {
 public:
  Paths(const Cluster& cluster, const Links& links);

  int between(Rank from, Rank to);
  // From a worker to others of its own class.
  int fan(Rank from, Rank to);
  [[nodiscard]] Path& operator[](int path) { return paths_[path]; }
  [[nodiscard]] const Path& operator[](int path) const { return paths_[path]; }

  [[nodiscard]] int class_of(Rank rank) const { return class_of_[rank]; }
  [[nodiscard]] int class_size(Rank rank) const { return class_size_[class_of_[rank]]; }
  [[nodiscard]] int classes() const { return static_cast<int>(class_size_.size()); }
  // Gives a worker a class of its own; before the first path is asked for.
  void set_apart(Rank rank);

  // The latency of a link, named by its way up, grew by so much.
  void add_latency(int link_up, double seconds);

 private:
  int make(Rank from, Rank to);
  void follow_tree(Path& path, Rank from, Rank to) const;

  const Cluster& cluster_;
  const Links& links_;
  std::vector<int> class_of_;
  std::vector<int> class_size_;
  std::unordered_map<std::uint64_t, int> known_;
  std::vector<Path> paths_;
};

}  // namespace riffle::simulator
