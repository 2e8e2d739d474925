// Who has ended its session, and after how many steps. A rank that waits for one that has ended
// earlier learns it by name, at once, instead of at a deadline: unequal numbers of batches, an
// exception in the training loop. A rank that ended later than the waiting one may leave in peace.
#pragma once

#include <optional>
#include <vector>

#include "riffle/engine.h"

namespace riffle::runtime {

class Notices {
 public:
  // `session` is a number that all ranks of this session, and no other session, use.
  Notices(Engine& engine, const Group& ranks, std::uint64_t session);
  ~Notices();
  Notices(const Notices&) = delete;
  Notices& operator=(const Notices&) = delete;

  // Tells all others, and collects what they say for a moment, so that nothing is left over.
  void end(Step steps, Seconds patience);
  // The same where all go on together: throws for a rank that has failed or has ended after
  // another number of steps.
  void meet(Step steps, Seconds timeout);
  // Throws for a rank that has failed, or has ended before `step` was complete. Any thread, one at
  // a time.
  void check(const CommContext& context);

 private:
  struct Peer {
    Rank rank = 0;
    Request request;
    Step ended_after = -1;  // steps; -1: still in its session
  };
  void listen();
  void look(Peer& peer);
  void tell(Step steps);
  // True when all have said how they ended, or have failed.
  bool all_ended();
  void finish_sends();

  Engine& engine_;
  Tag tag_;
  std::vector<Peer> peers_;
  std::vector<Step> received_;
  std::vector<Request> sends_;
  Step told_ = -1;
};

}  // namespace riffle::runtime
