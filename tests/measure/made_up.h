// What would be measured on a given cluster, made up: every worker a host of its own.
#pragma once

#include <algorithm>
#include <map>

#include "measure/cluster_fit.h"
#include "measure/echoes.h"
#include "riffle/random.h"

namespace riffle::measure {

struct Noise {
  double latency = 0;  // makes them longer, up to this share
  double rate = 0;     // makes them less, up to this share
  double missing = 0;  // of the pairs' rates
  std::uint64_t seed = 7;
};

inline PairTable<Seconds> latencies_of(const Cluster& cluster, const Noise& noise) {
  Random random(noise.seed);
  PairTable<Seconds> table(cluster.size());
  for (int a = 0; a < cluster.size(); ++a)
    for (int b = a + 1; b < cluster.size(); ++b)
      table.set_both(a, b, cluster.latency(a, b) * (1 + noise.latency * random.uniform(0, 1)));
  return table;
}

// The links that a path takes, each way of one by itself: a number, and what it carries.
inline std::vector<std::pair<int, double>> path_of(const Cluster& cluster, int from, int to) {
  std::vector<std::pair<int, double>> links;
  const int n = cluster.size();
  links.emplace_back(2 * from, cluster.workers[from].link.bandwidth.bytes_per_second);
  links.emplace_back(2 * to + 1, cluster.workers[to].link.bandwidth.bytes_per_second);
  int a = cluster.workers[from].domain;
  int b = cluster.workers[to].domain;
  while (a != b) {
    int& deeper = a > b ? a : b;
    links.emplace_back(2 * (n + deeper) + (&deeper == &b ? 1 : 0),
                       cluster.domains[deeper].uplink.bandwidth.bytes_per_second);
    deeper = cluster.domains[deeper].parent;
  }
  return links;
}

// Flows that run at once share links max-min fairly: all grow alike until a link is full, whose
// flows then stay as they are.
inline std::vector<Bandwidth> carried(const Cluster& cluster,
                                      const std::vector<std::pair<int, int>>& flows) {
  std::vector<Bandwidth> rates(flows.size());
  std::vector<bool> stays(flows.size());
  while (std::ranges::count(stays, false) > 0) {
    std::map<int, std::pair<double, int>> left;  // by link: what is free, and who wants it
    for (std::size_t i = 0; i < flows.size(); ++i)
      for (const auto& [link, rate] : path_of(cluster, flows[i].first, flows[i].second)) {
        auto& [free, users] = left.try_emplace(link, rate, 0).first->second;
        free -= rates[i].bytes_per_second;
        users += stays[i] ? 0 : 1;
      }
    double step = 1e18;
    for (const auto& [link, each] : left)
      if (each.second > 0) step = std::min(step, each.first / each.second);
    for (std::size_t i = 0; i < flows.size(); ++i)
      if (!stays[i]) rates[i].bytes_per_second += step;
    for (std::size_t i = 0; i < flows.size(); ++i)
      for (const auto& [link, rate] : path_of(cluster, flows[i].first, flows[i].second)) {
        const auto& [free, users] = left.at(link);
        if (users > 0 && free / users <= step * (1 + 1e-9)) stays[i] = true;
      }
  }
  return rates;
}

// Round by round, one way and then the other.
inline PairTable<Bandwidth> rates_of(const Cluster& cluster, const Noise& noise) {
  const int n = cluster.size();
  Random random(noise.seed + 1);
  PairTable<Bandwidth> table(n);
  for (int round = 0; round < rounds_of(n); ++round) {
    std::vector<std::pair<int, int>> flows;
    for (int a = 0; a < n; ++a)
      if (const int b = opponent(a, round, n); b > a) flows.emplace_back(a, b);
    for (int way = 0; way < 2; ++way) {
      const std::vector<Bandwidth> rates = carried(cluster, flows);
      for (std::size_t i = 0; i < flows.size(); ++i) {
        auto& [from, to] = flows[i];
        const double factor = 1 - noise.rate * random.uniform(0, 1);
        if (random.uniform(0, 1) >= noise.missing)
          table.at(from, to) = Bandwidth{rates[i].bytes_per_second * factor};
        std::swap(from, to);
      }
    }
  }
  return table;
}

inline Measured measured_on(const Cluster& cluster, const Noise& noise = {},
                            const std::vector<int>& before = {}) {
  Measured measured;
  for (Rank rank = 0; rank < cluster.size(); ++rank) measured.hosts.push_back(Group{rank});
  measured.inside.assign(measured.hosts.size(), {microseconds(5), {5e9}});
  measured.latency = latencies_of(cluster, noise);
  measured.rate = rates_of(cluster, noise);
  measured.levels = find_levels(measured.latency, measured.rate, microseconds(50), before);
  measured.uplinks.resize(measured.levels.size());
  for (std::size_t p = 1; p < measured.levels.size(); ++p) {
    for (const Bandwidth rate :
         carried(cluster, pairs_across(measured.levels, static_cast<int>(p))))
      measured.uplinks[p].out.bytes_per_second += rate.bytes_per_second;
    measured.uplinks[p].in = measured.uplinks[p].out;
    measured.uplinks[p].ends = {1e18};
  }
  return measured;
}

}  // namespace riffle::measure
