// The fast network against the slow one: random trees, random flows, random starts.
#include "simulate/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "reference.h"
#include "riffle/random.h"

namespace riffle::simulator {
namespace {

double log_uniform(Random& random, double low, double high) {
  return std::exp(random.uniform(std::log(low), std::log(high)));
}

// Racks of unequal size in sites; a few kinds of worker links, so that some workers share a class.
Cluster random_cluster(Random& random) {
  Cluster cluster;
  const auto link = [&](double low, double high) {
    return Link{Seconds(log_uniform(random, 1e-5, 1e-3)),
                Bandwidth{log_uniform(random, low, high)}};
  };
  const std::vector<Link> kinds{link(1e8, 1e9), link(1e8, 1e9)};
  cluster.domains.push_back({"root", -1, {}});
  const auto top = static_cast<int>(1 + random.below(4));
  for (int t = 0; t < top; ++t) {
    cluster.domains.push_back({"d" + std::to_string(t), 0, link(5e7, 2e9)});
    const int parent = static_cast<int>(cluster.domains.size()) - 1;
    const bool nested = random.below(3) == 0;
    for (int inner = 0; inner < (nested ? 2 : 1); ++inner) {
      int domain = parent;
      if (nested) {
        cluster.domains.push_back({"e" + std::to_string(inner), parent, link(5e7, 2e9)});
        domain = static_cast<int>(cluster.domains.size()) - 1;
      }
      const auto workers = 1 + random.below(5);
      for (std::uint64_t w = 0; w < workers; ++w)
        cluster.workers.push_back({domain, kinds[random.below(kinds.size())], 1});
    }
  }
  if (cluster.workers.size() < 2) cluster.workers.push_back(cluster.workers.front());
  return cluster;
}

struct Launch {
  double time = 0;
  reference::Flow flow;
};

std::vector<Launch> random_launches(Random& random, const Cluster& cluster) {
  std::vector<Launch> launches;
  const auto n = static_cast<std::uint64_t>(cluster.size());
  for (std::uint64_t i = 0, count = 1 + random.below(60); i < count; ++i) {
    const auto from = static_cast<Rank>(random.below(n));
    auto to = static_cast<Rank>(random.below(n - 1));
    if (to >= from) ++to;
    // Some start together: such flows share a stream from the first byte on.
    const double time = static_cast<double>(random.below(8)) * 0.01 +
                        (random.below(2) == 0 ? 0 : random.uniform(0, 0.01));
    const double bytes = random.below(3) == 0 ? 1e6 : log_uniform(random, 1e3, 1e7);
    launches.push_back({time, {from, to, bytes}});
  }
  std::ranges::stable_sort(launches, {}, &Launch::time);
  return launches;
}

std::vector<double> fast_arrivals(const Cluster& cluster, const std::vector<Launch>& launches) {
  EventQueue queue;
  Network network(cluster, queue);
  std::vector<double> arrivals(launches.size(), -1);
  for (std::size_t i = 0; i < launches.size(); ++i)
    queue.push(launches[i].time, Happening::compute, static_cast<int>(i));
  while (!queue.empty()) {
    const Agenda event = queue.pop();
    if (event.what == Happening::compute) {
      const reference::Flow& flow = launches[event.id].flow;
      network.send(network.path(flow.from, flow.to), flow.from, flow.to, flow.bytes,
                   {event.id, 0, 0, 0}, event.time);
    } else if (event.what == Happening::stream_done) {
      network.stream_done(event.id, event.time);
    } else {
      for (int flow = event.id; flow >= 0;) {
        arrivals[network.cargo(flow).collective] = event.time;
        flow = network.take(flow);
      }
    }
    if (queue.empty() || queue.next() > event.time) network.settle(event.time);
  }
  return arrivals;
}

TEST(Network, EqualsTheReferenceOnRandomFlows) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    const Cluster cluster = random_cluster(random);
    const auto launches = random_launches(random, cluster);
    std::vector<double> slow(launches.size(), -1);
    reference::FluidNetwork network(cluster);
    for (std::size_t i = 0; i < launches.size(); ++i)
      network.at(launches[i].time, [&, i](double) {
        network.start(launches[i].flow, [&slow, i](double t) { slow[i] = t; });
      });
    network.run();
    const auto fast = fast_arrivals(cluster, launches);
    for (std::size_t i = 0; i < launches.size(); ++i)
      ASSERT_NEAR(fast[i], slow[i], 1e-9 * slow[i]) << "seed " << seed << " flow " << i;
  }
}

TEST(Network, FlowsOfOneUplinkShareIt) {
  const Cluster cluster = parse_cluster("racks:2x4,inner=10us/1GB/s,outer=100us/100MB/s");
  std::vector<Launch> launches;
  for (int i = 0; i < 4; ++i) launches.push_back({0, {i, 4 + i, 1e6}});
  // Four flows of 1 MB at 25 MB/s, then a path of 10 + 100 us.
  for (const double arrival : fast_arrivals(cluster, launches))
    EXPECT_NEAR(arrival, 0.04 + 110e-6, 1e-12);
}

// The published example of max-min: A->B twice limited, A->C takes what is left.
TEST(Network, WhatOneFlowCannotUseGoesToTheOther) {
  Cluster cluster = parse_cluster("racks:3x1,inner=0us/1GB/s,outer=0us/100MB/s");
  cluster.workers.push_back(cluster.workers[0]);
  cluster.workers.push_back(cluster.workers[2]);
  cluster.domains[2].uplink.bandwidth = {30e6};
  // Rack 0's uplink carries one flow to rack 1 (30 MB/s at most) and one to rack 2.
  const auto arrivals = fast_arrivals(cluster, {{0, {0, 1, 3e6}}, {0, {3, 2, 7e6}}});
  EXPECT_NEAR(arrivals[0], 0.1, 1e-12);
  EXPECT_NEAR(arrivals[1], 0.1, 1e-12);
}

}  // namespace
}  // namespace riffle::simulator
