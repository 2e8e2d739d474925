// Who has ended its session, and after how many steps. A rank that waits for one that has ended
// earlier learns it by name, at once, instead of at a deadline: unequal numbers of batches, an
// exception in the training loop. A rank that ended later than the waiting one may leave in peace.
#pragma once

#include <mutex>
#include <vector>

#include "riffle/engine.h"

namespace riffle::runtime {

// How a rank ended.
struct Ending {
  Step steps = -1;    // that it has completed; -1: it has not ended
  Rank culprit = -1;  // the rank whose failure ended it, where it was one
  CommFailure failure = CommFailure::aborted;
};

// Any thread.
class PeerMonitor {
 public:
  // `session` is a number that all ranks of this session, and no other session, use.
  PeerMonitor(Engine& engine, const Group& ranks, std::uint64_t session);
  ~PeerMonitor();
  PeerMonitor(const PeerMonitor&) = delete;
  PeerMonitor& operator=(const PeerMonitor&) = delete;

  // Tells all others, and collects what they say for a moment, so that nothing is left over.
  void end(const Ending& ending, Seconds patience);
  // The same where all go on together: throws for a rank that has failed or has ended after
  // another number of steps.
  void meet(Step steps, Seconds timeout);
  // Throws for a rank that has failed, or has ended before `context.step` was complete.
  void check(const CommContext& context);
  // The error itself, or, where the rank it names has only followed another one, that of the
  // first.
  [[nodiscard]] CommError first_cause(const CommError& error);

 private:
  struct Peer {
    Rank rank = 0;
    Request request;
    Ending received;  // written by the engine
    Ending ending;
  };
  void listen();
  void look(Peer& peer);
  void tell(const Ending& ending);
  // True when all have said how they ended, or have failed.
  bool all_ended();
  void finish_sends();
  void throw_culprit(const Peer& peer, const CommContext& context);

  Engine& engine_;
  std::mutex mutex_;
  // Guarded by mutex_.
  Tag tag_;
  std::vector<Peer> peers_;
  std::vector<Request> sends_;
  Ending told_;
};

}  // namespace riffle::runtime
