// The policy of overlap: what may happen under backward, given what the user's loop does with
// gradients before it updates.
//
// Two things are right only where gradients are left alone between backward and the optimizer's
// step: updating a bucket under backward (strategies that mix updated weights), and leaving an
// update to the next forward (strategies whose gradients are complete only then). Everything else
// starts as early as its program says, whatever the loop does. So both wait in the first steps,
// which are watched: a loop that changes gradients (clips, scales) keeps them off for good, and
// sees averaged gradients at the end of backward as with any exact strategy; a loop that leaves
// them alone gets both from then on. One that begins to change gradients later gets an error.
#pragma once

#include <string>
#include <string_view>

#include "schedule/schedule.h"

namespace riffle::schedule {

class Overlap {
 public:
  // Steps that are watched.
  static constexpr int kWatched = 2;

  enum class Mode {
    full,     // whoever reports points knows that gradients are left alone
    watched,  // as said above
    none,     // the user does not want it, or an optimizer cannot update a part of its parameters
  };
  Overlap(const Needs& needs, Mode mode);

  // --- Of the step under way.
  [[nodiscard]] bool updates_in_backward() const { return needs_.per_bucket && open(); }
  [[nodiscard]] bool postpones() const { return needs_.postpones && open(); }
  // The adapter must notice gradients that change between backward and step.
  [[nodiscard]] bool watches() const { return watched_steps_ >= 0 && state_ != State::off; }
  // And by their values, because nothing has been relied on yet.
  [[nodiscard]] bool compares() const { return state_ == State::watching; }

  // The optimizer's step has begun. `changed` names a gradient that is not as backward left it;
  // empty: all are. Gives a line for the log, or nothing. UsageError where it was relied on.
  [[nodiscard]] std::string begin_step(std::string_view changed);
  // The session's own clipping was asked for. UsageError where buckets were updated already.
  void clip(bool updated);
  // The step is over: what was decided counts from the next one on.
  void end_step();

 private:
  enum class State { watching, on, off };
  [[nodiscard]] bool open() const { return state_ == State::on; }

  Needs needs_;
  State state_;
  State next_;
  int watched_steps_;  // below zero: nothing is watched
};

}  // namespace riffle::schedule
