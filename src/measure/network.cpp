#include "measure/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/median.h"
#include "measure/calls.h"
#include "measure/rounds.h"

namespace riffle::measure {
namespace {

constexpr Link kInside{microseconds(20), {5e9}};
constexpr Link kBetween{microseconds(100), {1.25e9}};

constexpr int kMostLooks = 3;
// Of the budget.
constexpr double kShareOfEchoes = 0.25;

// By host; what its first rank found counts.
std::vector<Link> time_inside(const Place& place, const Partition& hosts) {
  const Rank self = place.engine().rank();
  std::vector<double> told(2 * hosts.size());
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    if (!hosts[h].contains(self)) continue;
    const Link link =
        hosts[h].size() > 1 ? time_calls(place.engine(), place.control(), hosts[h]) : kInside;
    if (hosts[h].ranks().front() != self) continue;
    told[2 * h] = link.latency.count();
    told[2 * h + 1] = link.bandwidth.bytes_per_second;
  }
  place.control().all_reduce(told, Reduction::sum);
  std::vector<Link> links;
  for (std::size_t i = 0; i < told.size(); i += 2)
    links.push_back({Seconds(told[i]), {told[i + 1]}});
  return links;
}

Group first_ranks(const Partition& hosts) {
  std::vector<Rank> ranks;
  for (const Group& host : hosts) ranks.push_back(host.ranks().front());
  return Group(std::move(ranks));
}

// By host, the number of the rack that its first rank was in.
std::vector<int> known_racks(const Partition& before, const Partition& hosts) {
  std::vector<int> racks;
  if (before.size() < 2) return racks;
  for (const Group& host : hosts) {
    const auto found = std::ranges::find_if(
        before, [&](const Group& rack) { return rack.contains(host.ranks().front()); });
    racks.push_back(static_cast<int>(found - before.begin()));
  }
  return racks;
}

// Where a round trip usually takes much longer than at its best, because hosts are busy, the best
// is not certain either.
Seconds noise_of(const PairTable<Echo>& echoes) {
  constexpr Seconds kQuiet = microseconds(50);
  std::vector<Seconds> more{kQuiet};
  for (int a = 0; a < echoes.size(); ++a)
    for (int b = 0; b < a; ++b)
      more.push_back((echoes.at(a, b)->usual - echoes.at(a, b)->least) / 2);
  return std::max(median(more), kQuiet);
}

bool rests_on_rates(const Levels& levels) {
  return std::ranges::any_of(levels, &Part::by_rate);
}

// A pair with nothing between it that carried less than both of its hosts can.
bool has_odd_pair(const Levels& levels, const PairTable<Bandwidth>& rates) {
  constexpr double kOdd = 0.85;
  const std::vector<HostRate> hosts = host_rates(rates);
  for (int a = 0; a < rates.size(); ++a)
    for (int b = 0; b < rates.size(); ++b)
      if (const auto& rate = rates.at(a, b);
          rate && innermost(levels, a) == innermost(levels, b) &&
          rate->bytes_per_second <
              kOdd * std::min(hosts[a].best(), hosts[b].best()).bytes_per_second)
        return true;
  return false;
}

}  // namespace

Partition by_host(const Engine& engine) {
  std::map<std::string, std::size_t> index;
  std::vector<std::vector<Rank>> hosts;
  for (Rank rank = 0; rank < engine.size(); ++rank) {
    const auto [found, fresh] = index.try_emplace(engine.host(rank), hosts.size());
    if (fresh) hosts.emplace_back();
    hosts[found->second].push_back(rank);
  }
  Partition partition;
  for (auto& ranks : hosts) partition.emplace_back(std::move(ranks));
  return partition;
}

Cluster assumed_cluster(const Engine& engine) {
  const Partition hosts = by_host(engine);
  const bool flat = hosts.size() == 1;
  Cluster cluster;
  cluster.domains.push_back({"root", -1, {}});
  cluster.workers.resize(static_cast<std::size_t>(engine.size()));
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    if (!flat) cluster.domains.push_back({fmt::format("host{}", h), 0, kBetween});
    for (const Rank rank : hosts[h])
      cluster.workers[rank] = {.domain = flat ? 0 : static_cast<int>(h) + 1, .link = kInside};
  }
  return cluster;
}

NetworkOptions quick_look(Partition before) {
  NetworkOptions options;
  options.before = std::move(before);
  options.most_rounds = 8;
  options.most_time = Seconds(0.5);
  options.budget = Seconds(10);
  return options;
}

Network measure_network(const Place& place, const NetworkOptions& options) {
  const auto tell = [&](const std::string& what) {
    if (options.progress) options.progress(what);
  };
  Network network;
  Measured& measured = network.measured;
  measured.hosts = by_host(place.engine());
  network.speakers = first_ranks(measured.hosts);
  const int n = network.speakers.size();
  tell("inside hosts");
  measured.inside = time_inside(place, measured.hosts);
  tell(fmt::format("latency between {} hosts", n));
  network.echoes = time_echoes(place, network.speakers, options.budget * kShareOfEchoes);
  measured.latency = PairTable<Seconds>(n);
  for (int a = 0; a < n; ++a)
    for (int b = a + 1; b < n; ++b)
      measured.latency.set_both(a, b, network.echoes.at(a, b)->one_way());

  Rounds rounds(place, network.speakers, network.echoes, options.most_time, options.budget, tell);
  const Seconds noise = noise_of(network.echoes);
  const std::vector<int> known = known_racks(options.before, measured.hosts);
  const int most = std::min(rounds_of(n), options.most_rounds);
  rounds.run(most);
  measured.levels = find_levels(measured.latency, rounds.rates(), noise, known);
  // What looks like contention or a slow link may have been a moment's disturbance: it must show
  // twice.
  for (int look = 1; look < kMostLooks && !rounds.is_over() &&
                     (has_odd_pair(measured.levels, rounds.rates()) ||
                      (look == 1 && rests_on_rates(measured.levels)));
       ++look) {
    rounds.run(most);
    measured.levels = find_levels(measured.latency, rounds.rates(), noise, known);
  }
  measured.rate = rounds.rates();
  measured.uplinks.resize(measured.levels.size());
  for (std::size_t part = 1; part < measured.levels.size(); ++part)
    measured.uplinks[part] = rounds.load_uplink(measured.levels, static_cast<int>(part));
  network.flow_time = rounds.time();
  network.fit = fit_cluster(measured);
  return network;
}

}  // namespace riffle::measure
