#include "cases.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "riffle/random.h"

namespace riffle::simgrid {

Cluster random_cluster(std::uint64_t seed) {
  Random random(seed, 2026);
  const auto log_uniform = [&](double low, double high) {
    return std::exp(random.uniform(std::log(low), std::log(high)));
  };
  Cluster cluster;
  cluster.domains.push_back({"root", -1, {}});
  const auto racks = 2 + random.below(4);
  const bool alike = random.below(2) == 0;  // workers with equal links
  const Link common{Seconds(log_uniform(1e-5, 1e-4)), Bandwidth{log_uniform(5e8, 2e9)}};
  for (std::uint64_t r = 0; r < racks; ++r) {
    cluster.domains.push_back(
        {"rack" + std::to_string(r),
         0,
         {Seconds(log_uniform(5e-5, 1e-3)), Bandwidth{log_uniform(1e8, 2e9)}}});
    for (std::uint64_t w = 0, count = 2 + random.below(8); w < count; ++w) {
      const Link own{Seconds(log_uniform(1e-5, 1e-4)), Bandwidth{log_uniform(3e8, 2e9)}};
      cluster.workers.push_back({static_cast<int>(r) + 1, alike ? common : own, 1});
    }
  }
  return cluster;
}

int most_on_one_uplink(const pattern::Pattern& pattern, const Cluster& cluster) {
  int most = 0;
  std::vector<pattern::Message> messages;
  for (int round = 0; round < pattern.rounds(); ++round) {
    std::map<std::pair<int, bool>, int> crossing;  // by rack and direction
    for (int member = 0; member < pattern.members(); ++member) {
      messages.clear();
      pattern.sends(member, round, messages);
      for (const pattern::Message& message : messages) {
        const int from = cluster.workers[message.from].domain;
        const int to = cluster.workers[message.to].domain;
        if (from == to) continue;
        most = std::max({most, ++crossing[{from, true}], ++crossing[{to, false}]});
      }
    }
  }
  return most;
}

}  // namespace riffle::simgrid
