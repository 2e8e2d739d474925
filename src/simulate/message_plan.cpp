#include "simulate/message_plan.h"

#include <algorithm>
#include <cmath>

#include "riffle/error.h"

namespace riffle::simulator {
namespace {

// Fewer messages than this are cheap enough to be flows of their own.
constexpr int kSmallestFan = 8;
constexpr int kSmallestRun = 4;
// More would be more work and hardly another time: what the last one takes alone. Of many workers
// each segment is much work, since they are no longer in step: thousands have few segments, or one,
// and an exchange of theirs takes somewhat longer than it would.
constexpr int kMostSegments = 32;
constexpr int kMostParts = 4096;  // segments of a worker, all workers together

}  // namespace

Shape::Shape(const pattern::Pattern& pattern, Bytes piece, int workers)
    : members_(pattern.members()),
      rounds_(pattern.rounds()),
      most_segments_(std::clamp(kMostParts / workers, 1, kMostSegments)),
      first_{0} {
  if (pattern.has_phases()) segment_ = static_cast<double>(pattern::segment_bytes(pattern, piece));
  const auto classes = pattern.round_classes();
  repeating_ = classes.size() == 1 && rounds_ > 1;
  std::vector<pattern::Message> messages;
  if (repeating_) {
    read_round(pattern, 0);
    messages_ *= rounds_;
    shares_ *= rounds_;
    added_.clear();
    for (int round = 0; round < rounds_; ++round) {
      messages.clear();
      pattern.receives(0, round, messages);
      RIFFLE_CHECK_EQ(messages.size(), std::size_t{1});
      added_.push_back(messages[0].add ? static_cast<double>(messages[0].count) / pattern.blocks()
                                       : 0);
    }
  } else {
    for (int round = 0; round < rounds_; ++round) read_round(pattern, round);
  }
}

int Shape::segments(double bytes) const {
  if (segment_ <= 0) return 1;
  return static_cast<int>(std::clamp<double>(std::ceil(bytes / segment_), 1, most_segments_));
}

void Shape::read_round(const pattern::Pattern& pattern, int round) {
  std::vector<pattern::Message> messages;
  const std::size_t base = expected_.size();
  expected_.resize(base + members_);
  added_.resize(base + members_);
  std::vector<double> sizes;  // of this member's messages, blocks for one receiver together
  for (int member = 0; member < members_; ++member) {
    messages.clear();
    sizes.clear();
    pattern.sends(member, round, messages);
    for (const pattern::Message& message : messages) {
      const double share = static_cast<double>(message.count) / pattern.blocks();
      if (message.add) added_[base + message.to] += share;
      shares_ += share;
      messages_ += 1;
      if (!sizes.empty() && receivers_.back() == message.to) {
        sizes.back() += share;
        continue;
      }
      receivers_.push_back(message.to);
      sizes.push_back(share);
      ++expected_[base + message.to];
    }
    for (const double size : sizes) RIFFLE_CHECK(std::abs(size - sizes.front()) < 1e-12);
    share_.push_back(sizes.empty() ? 0 : sizes.front());
    first_.push_back(static_cast<int>(receivers_.size()));
  }
}

MessagePlan::MessagePlan(std::shared_ptr<const Shape> shape, const Group& group, Network& network)
    : shape_(std::move(shape)), group_(group) {
  const auto& ranks = group_.ranks();
  if (ranks.size() < 2 || shape_->rounds() == 0) return;
  const bool alike =
      std::ranges::all_of(ranks, [&](Rank rank) { return network.alike(rank, ranks.front()); });
  if (alike) {
    path_ = network.path(ranks[0], ranks[1]);
  } else {
    for (int cell = 0; cell < shape_->cells(); ++cell)
      for (int i = shape_->first_send(cell); i < shape_->first_send(cell + 1); ++i)
        paths_.push_back(network.path(ranks[cell % shape_->members()], ranks[shape_->receiver(i)]));
  }
  find_fans(network);
  find_runs(network);
  find_bundles(network);
}

void MessagePlan::find_runs(const Network& network) {
  const auto& ranks = group_.ranks();
  const int n = static_cast<int>(ranks.size());
  for (int first = 0, end = 0; first < n; first = end) {
    end = first;
    while (end < n && network.alike(ranks[first], ranks[end])) ++end;
    const int count = end - first;
    if (count >= kSmallestRun && count == network.class_size(ranks[first]))
      runs_.push_back({first, count});
  }
}

void MessagePlan::find_bundles(const Network& network) {
  if (runs_.empty()) return;
  bundled_.assign(static_cast<std::size_t>(shape_->cells()), -1);
  const int rows = shape_->cells() / shape_->members();
  for (int row = 0; row < rows; ++row)
    for (int r = 0; r < runs(); ++r) {
      const int cell = row * shape_->members() + runs_[r].first;
      if (!may_bundle(network, runs_[r], cell)) continue;
      std::fill_n(bundled_.begin() + cell, runs_[r].count, r);
    }
}

bool MessagePlan::may_bundle(const Network& network, const Run& run, int cell) const {
  const auto& ranks = group_.ranks();
  const int send = shape_->first_send(cell);
  if (shape_->first_send(cell + run.count) != send + run.count) return false;
  std::vector<char> heard(ranks.size(), 0);
  for (int i = 0; i < run.count; ++i) {
    const int to = shape_->receiver(send + i);
    const bool one_each = shape_->first_send(cell + i) == send + i && heard[to] == 0;
    heard[to] = 1;
    if (!one_each || path(send + i) != path(send) || shape_->share(cell + i) != shape_->share(cell))
      return false;
  }
  return network.class_size(ranks[shape_->receiver(send)]) == run.count;
}

void MessagePlan::find_fans(Network& network) {
  const auto& ranks = group_.ranks();
  for (int cell = 0; cell < shape_->cells(); ++cell) {
    const int begin = shape_->first_send(cell);
    const int end = shape_->first_send(cell + 1);
    if (end - begin < kSmallestFan) continue;
    const Rank from = ranks[cell % shape_->members()];
    bool fan = true;
    for (int i = begin; i < end && fan; ++i) fan = network.alike(from, ranks[shape_->receiver(i)]);
    if (!fan) continue;
    if (fans_.empty()) fans_.assign(static_cast<std::size_t>(shape_->cells()), -1);
    fans_[cell] = network.fan_path(from, ranks[shape_->receiver(begin)]);
  }
}

std::shared_ptr<const Shape> MessagePlans::shape(const Exchange& exchange, Algorithm algorithm) {
  const int n = exchange.group.size();
  const auto compile = [&] {
    const bool two_level = algorithm == Algorithm::two_level;
    return std::make_shared<const Shape>(
        *pattern::make_pattern(algorithm, exchange.collective, n,
                               two_level ? pattern::rack_positions(exchange.group, cluster_)
                                         : std::vector<std::vector<int>>{},
                               exchange.shift),
        cluster_.piece, cluster_.size());
  };
  if (algorithm == Algorithm::two_level) return compile();  // it depends on where the members are
  auto& known = shapes_[{algorithm, exchange.collective, n, exchange.shift}];
  if (!known) known = compile();
  return known;
}

std::shared_ptr<const MessagePlan> MessagePlans::get(const Exchange& exchange,
                                                     Algorithm algorithm) {
  auto& known = plans_[{exchange.group.identity(), algorithm, exchange.collective, exchange.shift}];
  auto plan = known.lock();
  if (!plan) {
    plan =
        std::make_shared<const MessagePlan>(shape(exchange, algorithm), exchange.group, network_);
    known = plan;
  }
  return plan;
}

}  // namespace riffle::simulator
