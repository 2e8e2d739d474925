// The same all-reduce as SimGrid actors: one per worker, a message per message of the pattern.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <simgrid/s4u.hpp>

#include "cases.h"
#include "riffle/error.h"

namespace sg4 = simgrid::s4u;

namespace riffle::simgrid {
namespace {

// A directed link of ours is a link of SimGrid's; a path adds half of each link's latency.
sg4::Link* directed(sg4::NetZone* zone, const std::string& name, const Link& link,
                    Sharing sharing) {
  const double latency = sharing == Sharing::plain ? 0 : link.latency.count() / 2;
  return zone->create_link(name, link.bandwidth.bytes_per_second)->set_latency(latency)->seal();
}

void build_platform(const Cluster& cluster, Sharing sharing) {
  auto* zone = sg4::create_full_zone("world");
  std::vector<std::array<sg4::Link*, 2>> own;
  std::vector<std::array<sg4::Link*, 2>> uplink(cluster.domains.size());
  std::vector<sg4::Host*> hosts;
  for (int rank = 0; rank < cluster.size(); ++rank) {
    const Link& link = cluster.workers[rank].link;
    own.push_back({directed(zone, fmt::format("up{}", rank), link, sharing),
                   directed(zone, fmt::format("down{}", rank), link, sharing)});
    hosts.push_back(zone->create_host(fmt::format("host{}", rank), 1e9)->seal());
  }
  for (std::size_t d = 1; d < cluster.domains.size(); ++d)
    uplink[d] = {directed(zone, fmt::format("rack_up{}", d), cluster.domains[d].uplink, sharing),
                 directed(zone, fmt::format("rack_down{}", d), cluster.domains[d].uplink, sharing)};
  for (int from = 0; from < cluster.size(); ++from)
    for (int to = 0; to < cluster.size(); ++to) {
      if (from == to) continue;
      const int a = cluster.workers[from].domain;
      const int b = cluster.workers[to].domain;
      std::vector<sg4::LinkInRoute> route{sg4::LinkInRoute(own[from][0])};
      if (a != b)
        route.insert(route.end(), {sg4::LinkInRoute(uplink[a][0]), sg4::LinkInRoute(uplink[b][1])});
      route.emplace_back(own[to][1]);
      zone->add_route(hosts[from]->get_netpoint(), hosts[to]->get_netpoint(), nullptr, nullptr,
                      route, false);
    }
  zone->seal();
}

sg4::Mailbox* mailbox(const pattern::Message& message, int round) {
  return sg4::Mailbox::by_name(fmt::format("{}-{}-{}", message.from, message.to, round));
}

// Receives are posted before anything is sent, so that no sender waits for a receiver.
void member(const pattern::Pattern& pattern, const Cluster& cluster, Sharing sharing, int self,
            double& end) {
  struct Open {
    sg4::CommPtr comm;
    double latency = 0;  // that the member pays itself
  };
  int nothing = 0;
  void* received = nullptr;
  std::vector<pattern::Message> messages;
  const auto latency = [&](const pattern::Message& message) {
    return sharing == Sharing::plain ? cluster.latency(message.from, message.to).count() : 0;
  };
  std::vector<std::vector<Open>> rounds(static_cast<std::size_t>(pattern.rounds()));
  for (int round = 0; round < pattern.rounds(); ++round) {
    messages.clear();
    pattern.receives(self, round, messages);
    for (const pattern::Message& message : messages)
      rounds[round].push_back(
          {mailbox(message, round)->get_async<void>(&received), latency(message)});
  }
  for (int round = 0; round < pattern.rounds(); ++round) {
    messages.clear();
    pattern.sends(self, round, messages);
    for (const pattern::Message& message : messages) {
      const double bytes = kBytes * message.count / pattern.blocks();
      rounds[round].push_back(
          {mailbox(message, round)->put_async(&nothing, static_cast<std::uint64_t>(bytes)),
           latency(message)});
    }
    double arrived = 0;
    for (const Open& open : rounds[round]) {
      open.comm->wait();
      arrived = std::max(arrived, open.comm->get_finish_time() + open.latency);
    }
    if (sharing == Sharing::plain) sg4::this_actor::sleep_until(arrived);
  }
  end = sg4::Engine::get_clock();
}

PeerResult simulate_here(const pattern::Pattern& pattern, const Cluster& cluster, Sharing sharing) {
  // No window, no correction, no traffic the other way.
  std::vector<std::string> arguments{"peer",
                                     "--cfg=network/model:CM02",
                                     "--cfg=network/TCP-gamma:0",
                                     "--cfg=network/latency-factor:1",
                                     "--cfg=network/bandwidth-factor:1",
                                     "--cfg=network/weight-S:0",
                                     "--cfg=network/crosstraffic:0",
                                     "--cfg=surf/precision:1e-9",
                                     "--cfg=maxmin/precision:1e-9",
                                     "--log=root.thres:warning"};
  std::vector<char*> raw;
  for (std::string& argument : arguments) raw.push_back(argument.data());
  int count = static_cast<int>(raw.size());
  raw.push_back(nullptr);
  sg4::Engine engine(&count, raw.data());
  build_platform(cluster, sharing);
  std::vector<double> ends(static_cast<std::size_t>(cluster.size()), 0);
  for (int rank = 0; rank < cluster.size(); ++rank)
    sg4::Actor::create(fmt::format("member{}", rank),
                       engine.host_by_name(fmt::format("host{}", rank)),
                       [&, rank] { member(pattern, cluster, sharing, rank, ends[rank]); });
  const auto before = std::chrono::steady_clock::now();
  engine.run();
  PeerResult result;
  result.wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  for (const double end : ends) result.mean_end += end / static_cast<double>(ends.size());
  return result;
}

}  // namespace

// SimGrid has one engine a process, so each case is a process.
PeerResult run_peer(const pattern::Pattern& pattern, const Cluster& cluster, Sharing sharing) {
  int channel[2];
  RIFFLE_CHECK(::pipe(channel) == 0);
  const pid_t child = ::fork();
  RIFFLE_CHECK(child >= 0);
  if (child == 0) {
    const PeerResult result = simulate_here(pattern, cluster, sharing);
    const bool written = ::write(channel[1], &result, sizeof(result)) == sizeof(result);
    ::_exit(written ? 0 : 1);
  }
  ::close(channel[1]);
  PeerResult result;
  const bool whole = ::read(channel[0], &result, sizeof(result)) == sizeof(result);
  ::close(channel[0]);
  ::waitpid(child, nullptr, 0);
  if (!whole) throw std::runtime_error("the SimGrid process failed");
  return result;
}

}  // namespace riffle::simgrid
