// What limits a strategy on a cluster: make one kind of link free, simulate again, see what goes.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "riffle/plan.h"

namespace riffle {
namespace {

constexpr double kFree = 1e6;            // times the bandwidth
constexpr double kNothingToGain = 0.02;  // of a step

Cluster without_latency(Cluster cluster) {
  for (WorkerSpec& worker : cluster.workers) worker.link.latency = Seconds{};
  for (Domain& domain : cluster.domains) domain.uplink.latency = Seconds{};
  for (PairLink& pair : cluster.pairs) pair.link.latency = Seconds{};
  if (cluster.fit) cluster.fit->a = Seconds{};
  return cluster;
}

int depth_of(const Cluster& cluster, int domain) {
  int depth = 0;
  for (; cluster.domains[domain].parent >= 0; domain = cluster.domains[domain].parent) ++depth;
  return depth;
}

// "rack0, rack1, ..." shortened to the one slow one where only one is slower than its siblings.
std::string name_uplinks(const Cluster& cluster, const std::vector<int>& domains) {
  const auto rate = [&](int d) { return cluster.domains[d].uplink.bandwidth; };
  const int slowest = *std::ranges::min_element(domains, {}, rate);
  const auto as_slow =
      std::ranges::count_if(domains, [&](int d) { return rate(d) == rate(slowest); });
  const std::string& name = cluster.domains[slowest].name;
  if (as_slow == 1 && domains.size() > 1)
    return fmt::format("the uplink of {} ({})", name, print(rate(slowest)));
  const std::string level =
      name.substr(name.rfind('/') == std::string::npos ? 0 : name.rfind('/') + 1);
  const std::string kind = level.substr(0, level.find_first_of("0123456789"));
  return fmt::format("the uplinks of the {}s ({})", kind.empty() ? "domain" : kind,
                     print(rate(slowest)));
}

struct Trial {
  Limit limit;
  Cluster cluster;
};

std::vector<Trial> trials(const Cluster& cluster) {
  std::vector<Trial> list{{{"latency", "", 0}, without_latency(cluster)}};
  if (cluster.fit) {
    Cluster free = cluster;
    free.fit->b = {};
    list.push_back({{"bandwidth", "the network", 0}, free});
    return list;
  }
  Cluster free = cluster;
  for (WorkerSpec& worker : free.workers) worker.link.bandwidth.bytes_per_second *= kFree;
  for (PairLink& pair : free.pairs) pair.link.bandwidth.bytes_per_second *= kFree;
  const Bandwidth own = cluster.workers.front().link.bandwidth;
  list.push_back({{"bandwidth", fmt::format("the workers' own links ({})", print(own)), 0}, free});
  std::set<int> depths;
  for (std::size_t d = 1; d < cluster.domains.size(); ++d)
    depths.insert(depth_of(cluster, static_cast<int>(d)));
  for (const int depth : depths) {
    std::vector<int> level;
    free = cluster;
    for (std::size_t d = 1; d < cluster.domains.size(); ++d) {
      if (depth_of(cluster, static_cast<int>(d)) != depth) continue;
      level.push_back(static_cast<int>(d));
      free.domains[d].uplink.bandwidth.bytes_per_second *= kFree;
    }
    list.push_back({{"bandwidth", name_uplinks(cluster, level), 0}, free});
  }
  return list;
}

}  // namespace

Limit find_limit(const Trace& trace, const Cluster& cluster, const NamedStrategy& strategy,
                 const SimulateOptions& options) {
  const Simulation now = simulate(trace, cluster, strategy, options);
  Limit best{"compute", "", now.compute / now.iteration};
  if (now.exposed_communication / now.iteration < kNothingToGain || now.workers == 1) return best;
  best.share = 0;
  for (Trial& trial : trials(cluster)) {
    trial.limit.share =
        1 - simulate(trace, trial.cluster, strategy, options).iteration / now.iteration;
    if (trial.limit.share > best.share) best = trial.limit;
  }
  // Stragglers and jitter: no link helps.
  if (best.share < kNothingToGain) return {"compute", "", now.compute / now.iteration};
  return best;
}

std::string print(const Limit& limit) {
  if (limit.what == "compute") return "computing itself: no faster network would help";
  const std::string what =
      limit.what == "latency" ? std::string("latency") : "the bandwidth of " + limit.link;
  return fmt::format("{}: without it a step would take {:.0f} % less", what, limit.share * 100);
}

}  // namespace riffle
