#include <algorithm>
#include <bit>

#include "pattern/pieces.h"
#include "riffle/cost.h"
#include "riffle/error.h"

namespace riffle {
namespace {

// One switch, equal links, nothing measured: the closed form is exact.
bool uniform(const Cluster& cluster, const Group& group) {
  if (!cluster.pairs.empty()) return false;
  const WorkerSpec& first = cluster.workers[group.ranks().front()];
  return std::ranges::all_of(group, [&](Rank rank) {
    const WorkerSpec& worker = cluster.workers[rank];
    return worker.domain == first.domain && worker.link == first.link;
  });
}

// Bytes that cross each link in one round, as a share of the vector. Links are numbered by the
// worker or domain they lead to and their direction.
class RoundLoad {
 public:
  explicit RoundLoad(const Cluster& cluster)
      : cluster_(cluster), load_(2 * (cluster.workers.size() + cluster.domains.size()), 0.0) {}

  void clear() {
    for (const std::size_t link : used_) load_[link] = 0;
    used_.clear();
    latency_ = Seconds{};
    slowest_ = 0;
  }

  void add(Rank from, Rank to, double share) {
    latency_ = std::max(latency_, cluster_.latency(from, to));
    for (const PairLink& pair : cluster_.pairs)
      if (pair.from == from && pair.to == to) {
        slowest_ = std::max(slowest_, share / pair.link.bandwidth.bytes_per_second);
        return;
      }
    put(from, kOut, cluster_.workers[from].link, share);
    put(to, kIn, cluster_.workers[to].link, share);
    int a = cluster_.workers[from].domain;
    int b = cluster_.workers[to].domain;
    while (a != b) {
      int& deeper = a > b ? a : b;
      put(cluster_.size() + deeper, a > b ? kOut : kIn, cluster_.domains[deeper].uplink, share);
      deeper = cluster_.domains[deeper].parent;
    }
  }

  [[nodiscard]] Seconds latency() const { return latency_; }
  // Seconds for each byte of the vector on the busiest link.
  [[nodiscard]] double seconds_per_byte() const { return slowest_; }

 private:
  static constexpr int kOut = 0;
  static constexpr int kIn = 1;

  void put(int place, int way, const Link& link, double share) {
    const auto at = static_cast<std::size_t>(2 * place + way);
    if (load_[at] == 0) used_.push_back(at);
    load_[at] += share;
    slowest_ = std::max(slowest_, load_[at] / link.bandwidth.bytes_per_second);
  }

  const Cluster& cluster_;
  Seconds latency_{};
  double slowest_ = 0;
  std::vector<double> load_;
  std::vector<std::size_t> used_;
};

void add_round(const pattern::Pattern& pattern, int round, RoundLoad& load, const Group& group) {
  std::vector<pattern::Message> messages;
  for (int member = 0; member < pattern.members(); ++member) {
    messages.clear();
    pattern.sends(member, round, messages);
    for (const pattern::Message& message : messages)
      load.add(group.ranks()[message.from], group.ranks()[message.to],
               static_cast<double>(message.count) / pattern.blocks());
  }
}

// A round takes as long as its farthest message and its busiest link.
LinearCost round_cost(const pattern::Pattern& pattern, int round, RoundLoad& load,
                      const Group& group) {
  load.clear();
  add_round(pattern, round, load, group);
  return {load.latency(), {load.seconds_per_byte()}};
}

// The rounds of a pattern, one after the other.
LinearCost walk_rounds(const pattern::Pattern& pattern, const Cluster& cluster,
                       const Group& group) {
  LinearCost cost;
  RoundLoad load(cluster);
  for (const pattern::RoundClass& each : pattern.round_classes()) {
    const LinearCost round = round_cost(pattern, each.round, load, group);
    cost.a += round.a * each.times;
    cost.b.value += round.b.value * each.times;
  }
  return cost;
}

// A vector that is cut into segments of so many bytes, in a pattern with phases. The first segment
// goes through all rounds; behind it each byte costs what it takes on the link that all rounds
// together load most, or what it takes until one of the window's segments is done and the next may
// begin. Up to a segment the rounds one after the other are cheaper, beyond it this.
LinearCost in_segments(const pattern::Pattern& pattern, const Cluster& cluster, const Group& group,
                       const LinearCost& whole) {
  RoundLoad load(cluster);
  for (int round = 0; round < pattern.rounds(); ++round) add_round(pattern, round, load, group);
  const auto segment = static_cast<double>(pattern::segment_bytes(pattern, cluster.piece));
  const double turn = whole.a.count() / segment + whole.b.value;  // a segment alone, each byte
  const double each =
      std::min(whole.b.value, std::max(load.seconds_per_byte(), turn / pattern::kWindow));
  return {whole.a + Seconds((whole.b.value - each) * segment), {each}};
}

// What the closed form of recursive doubling adds where n is not a power of two: the vector of the
// first round once more.
double folded_again(const pattern::Pattern& pattern, const Cluster& cluster, const Group& group) {
  if (std::has_single_bit(static_cast<unsigned>(group.size()))) return 0;
  RoundLoad load(cluster);
  return round_cost(pattern, 0, load, group).b.value;
}

// The farthest pair and the slowest link of a group, for the algorithm that has no pattern.
LinearCost worst_link(const ClosedForm& form, const Cluster& cluster, const Group& group) {
  Seconds latency{};
  double rate = cluster.workers[group.ranks().front()].link.bandwidth.bytes_per_second;
  const Rank first = group.ranks().front();
  for (const Rank rank : group) {
    latency = std::max(latency, cluster.latency(first, rank));
    rate = std::min(rate, cluster.workers[rank].link.bandwidth.bytes_per_second);
    if (cluster.workers[rank].domain == cluster.workers[first].domain) continue;
    for (const int domain : cluster.ancestors(rank))
      if (cluster.domains[domain].parent >= 0)
        rate = std::min(rate, cluster.domains[domain].uplink.bandwidth.bytes_per_second);
  }
  return {form.latencies * latency, {form.bytes / rate}};
}

std::vector<Algorithm> choices(const Cluster& cluster, const Group& group, Collective collective) {
  std::vector<Algorithm> list{Algorithm::ring, Algorithm::halving_doubling};
  if (group.size() <= kLargestDirect) list.push_back(Algorithm::direct);
  if (collective != Collective::all_reduce) return list;
  list.push_back(Algorithm::recursive_doubling);
  const auto racks = pattern::rack_positions(group, cluster);
  const bool nested = racks.size() > 1 && static_cast<int>(racks.size()) < group.size();
  if (nested) list.push_back(Algorithm::two_level);
  return list;
}

}  // namespace

void CostModel::add_lines(const Group& group, Collective collective, Algorithm algorithm, int shift,
                          std::vector<Curve::Piece>& lines) const {
  const ClosedForm form = closed_form(algorithm, collective, group.size());
  const auto add = [&](LinearCost cost) {
    cost.b.value += form.reduced * cluster_.gamma.value;
    lines.push_back({Bytes{0}, cost, algorithm});
  };
  if (uniform(cluster_, group)) {
    const Link& link = cluster_.workers[group.ranks().front()].link;
    return add({form.latencies * link.latency, {form.bytes / link.bandwidth.bytes_per_second}});
  }
  if (algorithm == Algorithm::tree && collective == Collective::all_reduce)
    return add(worst_link(form, cluster_, group));
  const auto pattern = pattern::make_pattern(algorithm, collective, group.size(),
                                             pattern::rack_positions(group, cluster_), shift);
  LinearCost whole = walk_rounds(*pattern, cluster_, group);
  if (algorithm == Algorithm::recursive_doubling && collective == Collective::all_reduce)
    whole.b.value += folded_again(*pattern, cluster_, group);
  add(whole);
  if (pattern->has_phases()) add(in_segments(*pattern, cluster_, group, whole));
}

Curve CostModel::compute(const Group& group, Collective collective, Algorithm algorithm,
                         int shift) const {
  if (group.size() <= 1) return Curve(LinearCost{});
  const bool all = group.size() == cluster_.size();
  if (cluster_.fit) {
    if (!all || collective == Collective::shift || collective == Collective::serve)
      usage_error("cluster {}: a fit knows only an all-reduce over all {} workers, not groups",
                  print(cluster_), cluster_.size());
    const double part = collective == Collective::all_reduce ? 1 : 0.5;
    return Curve(LinearCost{cluster_.fit->a * part, {cluster_.fit->b.value * part}});
  }
  if (measured_ && all && collective == Collective::all_reduce) return *measured_;

  std::vector<Algorithm> list{algorithm};
  if (algorithm == Algorithm::automatic) list = choices(cluster_, group, collective);
  if (collective == Collective::shift || collective == Collective::serve)
    list = {Algorithm::direct};
  std::vector<Curve::Piece> lines;
  for (const Algorithm each : list) add_lines(group, collective, each, shift, lines);
  return Curve::cheapest(lines);
}

const Curve& CostModel::curve(const Group& group, Collective collective, Algorithm algorithm,
                              int shift) const {
  if (algorithm == Algorithm::automatic) algorithm = cluster_.algorithm;
  const Key key{group.identity(), collective, algorithm, shift};
  const std::scoped_lock lock(mutex_);
  auto found = cache_.find(key);
  if (found == cache_.end())
    found =
        cache_.emplace(key, std::pair(group, compute(group, collective, algorithm, shift))).first;
  return found->second.second;
}

Seconds CostModel::time(const Exchange& exchange, Bytes size) const {
  return curve(exchange.group, exchange.collective, exchange.algorithm, exchange.shift)(size);
}

Algorithm CostModel::algorithm(const Exchange& exchange, Bytes size) const {
  if (exchange.algorithm != Algorithm::automatic) return exchange.algorithm;
  return curve(exchange.group, exchange.collective, exchange.algorithm, exchange.shift)
      .piece(size)
      .algorithm;
}

Traffic CostModel::traffic(const Exchange& exchange, Bytes size) const {
  const int n = exchange.group.size();
  if (n <= 1) return {};
  Algorithm chosen = algorithm(exchange, size);
  // A fit does not say how its all-reduce works; published ones are rings.
  if (chosen == Algorithm::automatic) chosen = Algorithm::ring;
  ClosedForm form = closed_form(chosen, exchange.collective, n);
  if (chosen == Algorithm::two_level && exchange.collective == Collective::all_reduce &&
      !cluster_.fit) {
    const auto pattern = pattern::make_pattern(chosen, exchange.collective, n,
                                               pattern::rack_positions(exchange.group, cluster_));
    std::vector<pattern::Message> messages;
    for (int round = 0; round < pattern->rounds(); ++round)
      for (int member = 0; member < n; ++member) pattern->sends(member, round, messages);
    double blocks = 0;
    for (const pattern::Message& message : messages) blocks += message.count;
    form.messages_sent = static_cast<double>(messages.size()) / n;
    form.bytes_sent = blocks / pattern->blocks() / n;
  }
  return {form.bytes_sent * static_cast<double>(size.count), form.messages_sent};
}

Bytes payload_bytes(const Bucket& bucket, Payload payload) {
  if (payload == Payload::buffers) return bucket.buffers;
  return payload == Payload::state ? bucket.bytes * 2 : bucket.bytes;
}

Bytes wire_bytes(Bytes size, DType dtype, Wire wire) {
  const std::int64_t element = size_of(dtype).count;
  std::int64_t travels = element;
  if (wire == Wire::bf16 || wire == Wire::f16) travels = std::min<std::int64_t>(element, 2);
  const std::int64_t elements = size.count / element;
  // A byte each, and a scale of 4 for every 256.
  if (wire == Wire::int8) return Bytes{elements + 4 * ((elements + 255) / 256)};
  return Bytes{elements * travels};
}

}  // namespace riffle
