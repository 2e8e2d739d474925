// A process group as one member sees it: its members, its calls in order, its messages.
//
// A team costs nothing: no message, no memory of other ranks, no thread until its first call that
// does not run on the caller's thread. Calls of a team are made in the order in which they were
// started, those of different teams independently of each other.
//
// After a call has failed for a reason that others share, members no longer know which call they
// are in, so all later calls of the team fail at once, with the same words.
#pragma once

#include <atomic>
#include <memory>
#include <stdexcept>

#include "distributed/mail.h"
#include "distributed/queue.h"
#include "distributed/world.h"

namespace riffle::distributed {

// Names rank, collective, sequence number and team.
class TeamError : public std::runtime_error {
 public:
  TeamError(CommFailure failure, const std::string& message)
      : std::runtime_error(message), failure_(failure) {}
  [[nodiscard]] CommFailure failure() const { return failure_; }

 private:
  CommFailure failure_;
};

struct TeamOptions {
  // Equal on all members, and of no other team of the world. Numbers up to 15 get the memory that a
  // host's ranks share; others travel as messages.
  std::string name;
  // Ranks of the world in the order of the team.
  std::vector<Rank> ranks;
  Seconds timeout{1800};
};

// What a call may use while it runs.
class TeamCall {
 public:
  TeamCall(World& world, const Group& group, CollectiveOptions options, Deadline deadline)
      : world_(world), group_(group), options_(options), deadline_(deadline) {}
  [[nodiscard]] Collectives& collectives() const { return world_.collectives(); }
  [[nodiscard]] Engine& engine() const { return world_.engine(); }
  [[nodiscard]] const Group& group() const { return group_; }
  // With what is left of the call's time.
  [[nodiscard]] CollectiveOptions options(Reduction reduction = Reduction::sum) const;

 private:
  World& world_;
  const Group& group_;
  CollectiveOptions options_;
  Deadline deadline_;
};

class Team {
 public:
  Team(std::shared_ptr<World> world, TeamOptions options);
  ~Team() { shutdown(); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  struct Start {
    std::string name;     // of the collective
    Seconds timeout{-1};  // negative: the team's
    bool here = false;    // the caller waits anyhow
    std::function<void(TeamCall&)> body;
    Done done;  // gets a TeamError, or what else the body threw
  };
  // Starts a call and gives its sequence number.
  std::uint64_t start(Start call);

  // Messages to and from a member (-1: any), by its place in the team.
  std::shared_ptr<Message> send(int to, Message::What what, Done done, Seconds timeout);
  std::shared_ptr<Message> receive(int from, Message::What what, Done done, Seconds timeout);
  bool test(Message& message) { return mail_->test(message); }
  // False: it takes longer than `timeout`.
  bool wait(Message& message, Seconds timeout);

  // Returns when all members have called it; else names, at member 0, those who have not: the
  // first, or all of them. The others then learn that member 0 did not answer.
  void monitored_barrier(Seconds timeout, bool name_all);

  [[nodiscard]] int size() const { return static_cast<int>(options_.ranks.size()); }
  [[nodiscard]] int self() const { return self_; }
  [[nodiscard]] Rank rank_of(int member) const {
    return options_.ranks[static_cast<std::size_t>(member)];
  }
  // The place of a member in the group of our collectives, which is in ascending order.
  [[nodiscard]] int place_of(int member) const { return group_.index_of(rank_of(member)); }
  [[nodiscard]] int member_of(Rank rank) const;
  [[nodiscard]] std::uint64_t sequence() const { return sequence_; }
  void set_timeout(Seconds timeout) { timeout_ = timeout; }
  [[nodiscard]] Seconds timeout() const { return timeout_; }

  // Calls that wait for their turn fail at once. Where the team is the whole world, the running
  // call does too.
  void abort();
  // Lets all calls end and lets go of the world.
  void shutdown();

 private:
  void run(Start& call, std::uint64_t sequence);
  [[nodiscard]] std::exception_ptr explained(const CommError& error, const std::string& name,
                                             std::uint64_t sequence) const;
  [[nodiscard]] Done explaining(Done done, const std::string& name, std::uint64_t sequence) const;
  [[nodiscard]] World& world() const;
  void attend(const std::shared_ptr<Message>& message);
  [[nodiscard]] Seconds or_default(Seconds timeout) const;

  std::shared_ptr<World> world_;
  TeamOptions options_;
  Group group_;
  int self_;
  int lane_ = 0;
  std::uint64_t channel_;
  std::atomic<Seconds> timeout_;
  std::atomic<std::uint64_t> sequence_ = 0;
  std::mutex mutex_;
  std::exception_ptr broken_;  // under mutex_
  std::mutex order_;           // numbers are given in the order of the queue
  std::shared_ptr<Mail> mail_;
  Queue queue_;
};

}  // namespace riffle::distributed
