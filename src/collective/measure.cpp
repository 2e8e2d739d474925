// Rank 0 bounces messages off one rank of every host, and tells all what it found.
#include <algorithm>
#include <map>
#include <vector>

#include "riffle/collective.h"
#include "riffle/error.h"

namespace riffle {

namespace {

constexpr std::uint64_t channel = 0x6d656173;  // "meas"
constexpr std::size_t large_bytes = std::size_t{1} << 20;
constexpr int warm_up = 2;
constexpr int small_bounces = 15;
constexpr int large_bounces = 5;

// The rank of each host that answers: the first, on rank 0's own host the second. None for hosts
// where rank 0 is alone.
std::vector<Rank> answering_ranks(const Engine& engine) {
  std::map<std::string, Rank> first;
  for (Rank rank = 1; rank < engine.size(); ++rank) first.emplace(engine.host(rank), rank);
  std::vector<Rank> ranks;
  for (const auto& [host, rank] : first) ranks.push_back(rank);
  std::ranges::sort(ranks);
  return ranks;
}

class Bouncer {
 public:
  Bouncer(Engine& engine, Deadline deadline)
      : engine_(engine), deadline_(deadline), data_(large_bytes) {}

  // Half of the best round trip: what disturbs a trip only makes it longer.
  Link measure(Rank peer) {
    const Seconds latency = best(peer, 8, small_bounces);
    const Seconds whole = best(peer, large_bytes, large_bounces);
    const Seconds transfer = std::max(whole - latency, Seconds(1e-9));
    return {.latency = latency, .bandwidth = {static_cast<double>(large_bytes) / transfer.count()}};
  }
  void answer() {
    for (int i = 0; i < warm_up + small_bounces; ++i) receive(0, 8), send(0, 8);
    for (int i = 0; i < warm_up + large_bounces; ++i) receive(0, large_bytes), send(0, large_bytes);
  }

 private:
  Seconds best(Rank peer, std::size_t bytes, int bounces) {
    Seconds found{1e9};
    for (int i = 0; i < warm_up + bounces; ++i) {
      const auto start = Clock::now();
      send(peer, bytes);
      receive(peer, bytes);
      if (i >= warm_up) found = std::min(found, Seconds(Clock::now() - start) / 2);
    }
    return found;
  }
  void send(Rank to, std::size_t bytes) {
    Request request = engine_.send(to, {.channel = channel}, std::span(data_).first(bytes));
    engine_.wait(request, {.deadline = deadline_, .context = {.operation = "measure"}});
  }
  void receive(Rank from, std::size_t bytes) {
    Request request = engine_.receive(from, {.channel = channel}, std::span(data_).first(bytes));
    engine_.wait(request, {.deadline = deadline_, .context = {.operation = "measure"}});
  }

  Engine& engine_;
  Deadline deadline_;
  std::vector<std::byte> data_;
};

// A path between hosts adds half of both uplinks. Rank 0 has seen only paths from its own host,
// whose uplink it takes for the best of them.
Cluster cluster_of(const Engine& engine, const std::map<std::string, Link>& links) {
  const std::string& own = engine.host(0);
  const bool near_known = links.contains(own);
  Link best_far{.latency = Seconds(1e9), .bandwidth = {0}};
  for (const auto& [host, link] : links)
    if (host != own && link.latency < best_far.latency) best_far = link;
  const bool far_known = best_far.bandwidth.bytes_per_second > 0;
  const Link near =
      near_known ? links.at(own) : Link{.latency = {}, .bandwidth = best_far.bandwidth};

  Cluster cluster;
  cluster.domains.push_back({.name = "all", .parent = -1, .uplink = {}});
  std::map<std::string, int> domains;
  for (Rank rank = 0; rank < engine.size(); ++rank) {
    const std::string& host = engine.host(rank);
    const auto [domain, is_new] = domains.emplace(host, static_cast<int>(cluster.domains.size()));
    if (is_new && far_known) {
      const Link far = host == own ? best_far : links.at(host);
      const Seconds beyond = std::max(far.latency - near.latency, Seconds(0));
      const Seconds ours = std::max(best_far.latency - near.latency, Seconds(0));
      cluster.domains.push_back({.name = host,
                                 .parent = 0,
                                 .uplink = {.latency = std::max(2 * beyond - ours, Seconds(0)),
                                            .bandwidth = far.bandwidth}});
    }
    cluster.workers.push_back({.domain = far_known ? domain->second : 0, .link = near});
  }
  return cluster;
}

}  // namespace

Cluster measure_cluster(Collectives& collectives, Engine& engine, Seconds timeout) {
  if (engine.size() == 1) return parse_cluster("flat:1,latency=1us,bandwidth=10GB/s");
  Bouncer bouncer(engine, after(timeout));
  const std::vector<Rank> answering = answering_ranks(engine);
  std::string text;
  if (engine.rank() == 0) {
    std::map<std::string, Link> links;
    for (const Rank peer : answering) links[engine.host(peer)] = bouncer.measure(peer);
    text = to_json(cluster_of(engine, links));
  } else if (std::ranges::find(answering, engine.rank()) != answering.end()) {
    bouncer.answer();
  }
  // As a broadcast of bytes, padded to whole elements.
  const Group all = Membership::all(engine.size()).ranks;
  double length = static_cast<double>(text.size());
  collectives.broadcast(all, 0, elements(std::span(&length, 1)), {.timeout = timeout});
  std::vector<float> words(static_cast<std::size_t>(length) / sizeof(float) + 1);
  auto* bytes = reinterpret_cast<char*>(words.data());
  std::ranges::copy(text, bytes);
  collectives.broadcast(all, 0, elements(std::span(words)), {.timeout = timeout});
  return cluster_from_json({bytes, static_cast<std::size_t>(length)}, "what rank 0 measured");
}

}  // namespace riffle
