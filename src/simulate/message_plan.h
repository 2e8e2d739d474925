// A collective's message pattern, compiled for one group on one network: who sends how much to whom
// in which round, over which path.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "pattern/pieces.h"
#include "simulate/network.h"

namespace riffle::simulator {

// The part that does not depend on where the members are.
class Shape {
 public:
  // `workers`: of the whole cluster, whose other groups are simulated at the same time.
  Shape(const pattern::Pattern& pattern, Bytes piece, int workers);

  [[nodiscard]] int members() const { return members_; }
  [[nodiscard]] int rounds() const { return rounds_; }
  // All rounds look alike (a ring): one message in, one out.
  [[nodiscard]] bool repeating() const { return repeating_; }
  // Rows of the tables below: rounds, or one for all of them.
  [[nodiscard]] int cell(int round, int member) const {
    return repeating_ ? member : round * members_ + member;
  }
  // Sends first..last of a cell. Blocks for one receiver in one round are one message; all messages
  // of a member in a round have the same size.
  [[nodiscard]] int first_send(int cell) const { return first_[cell]; }
  [[nodiscard]] const int& receiver(int send) const { return receivers_[send]; }
  [[nodiscard]] double share(int cell) const { return share_[cell]; }  // of the vector, each
  [[nodiscard]] int cells() const { return static_cast<int>(first_.size()) - 1; }
  // Messages that a member hears in a round, for all cells.
  [[nodiscard]] const std::vector<int>& expected() const { return expected_; }
  // The share of the vector that it adds to its own at the end of the round.
  [[nodiscard]] double added(int round, int member) const {
    return added_[repeating_ ? round : round * members_ + member];
  }
  // The segments that a vector of so many bytes travels in, one behind the other. One where the
  // pattern has no phases: segments would only hide latencies, which closed forms count in full.
  [[nodiscard]] int segments(double bytes) const;
  // Messages of all members, for the traffic count. Shares of the vector, likewise.
  [[nodiscard]] double messages() const { return messages_; }
  [[nodiscard]] double shares() const { return shares_; }

 private:
  void read_round(const pattern::Pattern& pattern, int round);

  int members_;
  int rounds_;
  double segment_ = 0;  // bytes; 0 where vectors travel whole
  int most_segments_;
  bool repeating_ = false;
  std::vector<int> first_;
  std::vector<int> receivers_;
  std::vector<double> share_;
  std::vector<int> expected_;
  std::vector<double> added_;
  double messages_ = 0;
  double shares_ = 0;
};

class MessagePlan {
 public:
  MessagePlan(std::shared_ptr<const Shape> shape, const Group& group, Network& network);

  [[nodiscard]] const Shape& shape() const { return *shape_; }
  [[nodiscard]] Rank rank(int member) const { return group_.ranks()[member]; }
  [[nodiscard]] int path(int send) const { return paths_.empty() ? path_ : paths_[send]; }
  // The path of a cell whose sends are a fan; -1 where they are not.
  [[nodiscard]] int fan(int cell) const { return fans_.empty() ? -1 : fans_[cell]; }

  // Neighbours in the group that are all the workers of a class. Where each sends one message in a
  // round, all over one path and to all the workers of a class, they may be a bundle.
  struct Run {
    int first = 0;
    int count = 0;
  };
  [[nodiscard]] int runs() const { return static_cast<int>(runs_.size()); }
  [[nodiscard]] const Run& run(int which) const { return runs_[which]; }
  // The run of a member whose messages of that cell may be in a bundle; -1 where they may not.
  [[nodiscard]] int bundled(int cell) const { return bundled_.empty() ? -1 : bundled_[cell]; }
  [[nodiscard]] Bundle bundle(int which, int round) const {
    const Run& run = runs_[which];
    const int cell = shape_->cell(round, run.first);
    return {group_.ranks().data(), &shape_->receiver(shape_->first_send(cell)), run.first,
            run.count};
  }

 private:
  void find_fans(Network& network);
  void find_runs(const Network& network);
  void find_bundles(const Network& network);
  [[nodiscard]] bool may_bundle(const Network& network, const Run& run, int cell) const;

  std::shared_ptr<const Shape> shape_;
  Group group_;
  int path_ = -1;           // of all sends, where they have the same
  std::vector<int> paths_;  // else of each
  std::vector<int> fans_;
  std::vector<Run> runs_;
  std::vector<int> bundled_;
};

// Compiles each pattern once. Plans live as long as somebody holds them.
class MessagePlans {
 public:
  MessagePlans(const Cluster& cluster, Network& network) : cluster_(cluster), network_(network) {}
  std::shared_ptr<const MessagePlan> get(const Exchange& exchange, Algorithm algorithm);

 private:
  std::shared_ptr<const Shape> shape(const Exchange& exchange, Algorithm algorithm);

  const Cluster& cluster_;
  Network& network_;
  std::map<std::tuple<Algorithm, Collective, int, int>, std::shared_ptr<const Shape>> shapes_;
  std::map<std::tuple<const void*, Algorithm, Collective, int>, std::weak_ptr<const MessagePlan>>
      plans_;
};

}  // namespace riffle::simulator
