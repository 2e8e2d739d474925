#include "measure/check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "measure/rounds.h"
#include "model/cluster_change.h"

namespace riffle::measure {
namespace {

// Latencies that differ by so much, and by more than noise, are of another network. Shorter ones
// are at once; longer ones may also queue behind others' traffic.
constexpr double kShorter = 1 / 1.5;
constexpr double kLonger = 3;
constexpr Seconds kNoise = microseconds(300);
// Hosts of a rack whose latencies are looked at.
constexpr std::size_t kSpokesmen = 2;
// Of a part that holds latencies and an uplink, what latencies may take.
constexpr double kShareOfEchoes = 0.25;

class Check {
 public:
  Check(const Place& place, const Cluster& known, const CheckOptions& options)
      : place_(place), known_(known), options_(options), hosts_(by_host(place.engine())) {
    std::vector<Rank> first;
    for (const Group& host : hosts_) first.push_back(host.ranks().front());
    speakers_ = Group(std::move(first));
    levels_ = levels_of(known, hosts_);
  }

  Cluster run() {
    if (options_.uplinks && levels_.parts.size() > 1 && latencies_are_as_before()) {
      Cluster now = with_uplinks();
      if (!model::changes(known_, now).empty()) return now;
    }
    return everything();
  }

 private:
  void rest() const {
    if (options_.between) options_.between();
  }
  [[nodiscard]] Seconds echo_time() const {
    return options_.together ? kShareOfEchoes * options_.slice : options_.slice;
  }
  [[nodiscard]] Seconds flow_time() const {
    return options_.together ? (1 - kShareOfEchoes) * options_.slice / 2 : options_.slice;
  }

  bool latencies_are_as_before() {
    std::vector<Rank> ranks;
    for (std::size_t p = 0; p < levels_.parts.size(); ++p) {
      if (!parts_of(levels_.parts, static_cast<int>(p)).empty()) continue;
      const std::vector<int>& hosts = levels_.parts[p].hosts;
      for (std::size_t i = 0; i < std::min(hosts.size(), kSpokesmen); ++i)
        ranks.push_back(speakers_.ranks()[hosts[i]]);
    }
    std::ranges::sort(ranks);
    const Group among(std::move(ranks));
    const PairTable<Echo> echoes = time_echoes(place_, among, echo_time());
    // Pairs that join the same parts have the same uplinks between them. What queues there delays
    // some trips, another latency delays all of them: the pair that was delayed least tells.
    struct Trip {
      Seconds was;
      Seconds is;
      [[nodiscard]] double factor() const { return is / was; }
    };
    std::map<std::pair<int, int>, Trip> paths;
    for (int a = 0; a < among.size(); ++a)
      for (int b = 0; b < a; ++b) {
        const Rank one = among.ranks()[a];
        const Rank other = among.ranks()[b];
        const Trip trip{known_.latency(one, other), echoes.at(a, b)->one_way()};
        const auto [path, is_new] =
            paths.try_emplace(std::minmax({part_of(one), part_of(other)}), trip);
        if (trip.factor() < path->second.factor()) path->second = trip;
      }
    return std::ranges::none_of(paths, [](const auto& path) {
      const Trip& trip = path.second;
      return (trip.factor() < kShorter || trip.factor() > kLonger) &&
             std::chrono::abs(trip.is - trip.was) > kNoise;
    });
  }

  [[nodiscard]] int part_of(Rank speaker) const {
    return innermost(levels_.parts, speakers_.index_of(speaker));
  }

  Cluster with_uplinks() {
    const int n = speakers_.size();
    PairTable<Echo> echoes(n);
    for (int a = 0; a < n; ++a)
      for (int b = 0; b < a; ++b) {
        const Seconds trip = 2 * known_.latency(speakers_.ranks()[a], speakers_.ranks()[b]);
        echoes.set_both(a, b, {trip, trip});
      }
    Rounds rounds(place_, speakers_, echoes, flow_time(), kEndless, [this](const std::string&) {
      if (!options_.together) rest();
    });
    Cluster now = known_;
    bool first = true;
    for (int p = 1; p < static_cast<int>(levels_.parts.size()); ++p) {
      Link& uplink = now.domains[static_cast<std::size_t>(levels_.domains[p])].uplink;
      const std::vector<int> siblings = parts_of(levels_.parts, levels_.parts[p].parent);
      // Two parts have one path between them.
      if (siblings.size() == 2 && siblings.back() == p) {
        uplink.bandwidth = now.domains[levels_.domains[siblings.front()]].uplink.bandwidth;
        continue;
      }
      if (options_.together && !std::exchange(first, false)) rest();
      uplink.bandwidth = rounds.load_uplink(levels_.parts, p, uplink.bandwidth).rate();
    }
    return now;
  }

  [[nodiscard]] Cluster everything() const {
    NetworkOptions all = quick_look(World(known_).racks());
    all.most_time = options_.slice / 2;  // it may take two
    all.budget = kEndless;               // steps take place in between
    all.progress = [this](const std::string&) { rest(); };
    return measure_network(place_, all).fit.cluster;
  }

  static constexpr Seconds kEndless{3600};

  const Place& place_;
  const Cluster& known_;
  const CheckOptions& options_;
  Partition hosts_;
  Group speakers_;
  KnownLevels levels_;
};

}  // namespace

KnownLevels levels_of(const Cluster& cluster, const Partition& hosts) {
  KnownLevels known;
  std::vector<int> part_of(cluster.domains.size(), 0);
  for (int d = 0; d < static_cast<int>(cluster.domains.size()); ++d) {
    const Group ranks = model::ranks_below(cluster, d);
    Part part;
    for (int h = 0; h < static_cast<int>(hosts.size()); ++h)
      if (ranks.contains(hosts[h].ranks().front())) part.hosts.push_back(h);
    if (d > 0) part.parent = part_of[cluster.domains[d].parent];
    part_of[d] = part.parent;
    // A host of several ranks is a domain of its own, and no rack.
    if (d > 0 && part.hosts.size() < 2) continue;
    part_of[d] = static_cast<int>(known.parts.size());
    known.parts.push_back(std::move(part));
    known.domains.push_back(d);
  }
  return known;
}

Cluster check_network(const Place& place, const Cluster& known, const CheckOptions& options) {
  return Check(place, known, options).run();
}

}  // namespace riffle::measure
