// The links of a cluster, by number: each worker's own and the uplink of each domain, up and down.
#pragma once

#include <limits>
#include <vector>

#include "riffle/cluster.h"

namespace riffle::simulator {

// Ways. A worker sends up and hears down.
inline constexpr int kUp = 0;
inline constexpr int kDown = 1;

inline constexpr int kMostLinks = 10;  // of a path: four levels of domains and the workers' own
inline constexpr double kNever = std::numeric_limits<double>::infinity();

class Links {
 public:
  explicit Links(const Cluster& cluster)
      : workers_(cluster.size()), links_(2 * (cluster.workers.size() + cluster.domains.size())) {
    for (Rank rank = 0; rank < workers_; ++rank) set(worker(rank, kUp), cluster.workers[rank].link);
    for (std::size_t d = 1; d < cluster.domains.size(); ++d)
      set(domain(static_cast<int>(d), kUp), cluster.domains[d].uplink);
  }

  [[nodiscard]] static int worker(Rank rank, int way) { return 2 * rank + way; }
  [[nodiscard]] int domain(int domain, int way) const { return 2 * (workers_ + domain) + way; }
  [[nodiscard]] bool is_worker(int link) const { return link < 2 * workers_; }
  [[nodiscard]] int count() const { return static_cast<int>(links_.size()); }

  // Bytes a second.
  [[nodiscard]] double capacity(int link) const { return links_[link].capacity; }
  void set_capacity(int link, double capacity) { links_[link].capacity = capacity; }
  // Half of this is added to a path for each end it crosses. Both ways have that of the way up.
  [[nodiscard]] double latency(int link) const { return links_[link].latency; }
  void set_latency(int link, double seconds) { links_[link].latency = seconds; }
  // Its bandwidth will change.
  [[nodiscard]] bool variable(int link) const { return links_[link].variable; }
  void set_variable(int link) { links_[link].variable = true; }

 private:
  struct State {
    double capacity = kNever;
    double latency = 0;
    bool variable = false;
  };

  void set(int up, const Link& link) {
    for (const int way : {kUp, kDown})
      links_[up + way] = {link.bandwidth.bytes_per_second, link.latency.count(), false};
  }

  int workers_;
  std::vector<State> links_;
};

}  // namespace riffle::simulator
