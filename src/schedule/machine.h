// The step machine: points in, actions out. It knows which exchanges are under way and which points
// each bucket has passed, and nothing of memory, threads, clocks or any framework; whoever owns
// those carries out what it says, in order.
//
// One step of one rank:  begin, then for each bucket before_forward, gradient_ready, before_step,
// stepped, in between backward_done once, at the end step_done. A point that is passed again gives
// no actions. A point that is reached before an earlier one passes that one first, so that a caller
// may leave out what it does not need.
//
// One thread at a time.
#pragma once

#include <vector>

#include "schedule/rules.h"

namespace riffle::schedule {

// One exchange of one step, as this rank takes part in it. In order of issue.
struct FlightId {
  Step step = 0;
  int index = 0;  // in the step's program
  auto operator<=>(const FlightId&) const = default;
};

struct Flight {
  FlightId id;
  Exchange exchange;
  bool in_place = false;  // travels_in_place
  // Those of its step that it waits for before it travels, on whatever lane they are: it starts
  // from their results, and no point is passed in between.
  std::vector<FlightId> after{};
};

struct Action {
  enum class Kind {
    complete,  // the bucket's gradient is complete: what was not used counts as zero
    snapshot,  // take what travels
    start,     // it may travel from now on
    wait,      // until it has arrived
    merge,     // join it with the local value; the flight is over
    forget,    // the flight is over without a merge: its result went on in a later one
    update,    // the optimizer may update the bucket now
  };
  Kind kind = Kind::complete;
  int bucket = 0;
  FlightId flight{};  // of snapshot, start, wait, merge, forget
  bool operator==(const Action&) const = default;
};
using Actions = std::vector<Action>;

class Machine {
 public:
  explicit Machine(Rank self) : self_(self) {}

  // The next step begins, with this program: the flights that this rank takes part in, in order of
  // issue. UsageError for what contradicts itself. `forward`: the points before_forward have been
  // passed already (the program of the step under way is replaced).
  std::vector<Flight> begin(Step step, const Program& program, int buckets, bool forward = false);
  // A flight of an earlier step that is still to be merged: after a resume.
  void resume(Flight flight);

  // --- Points. `update` is among the actions of before_forward where the update of the last step
  // was postponed to it, else among those of before_step.
  Actions before_forward(int bucket);
  Actions gradient_ready(int bucket);
  Actions backward_done();
  Actions before_step(int bucket);
  // The optimizer has updated the bucket: this step's update, or the postponed one.
  Actions stepped(int bucket);
  // UsageError where a postponed update has not been made.
  Actions step_done();

  // --- Where things stand.
  [[nodiscard]] Step step() const { return step_; }
  [[nodiscard]] int buckets() const { return static_cast<int>(at_.size()); }
  // Some exchange starts as soon as its bucket is updated: updating bucket by bucket under backward
  // hides that.
  [[nodiscard]] bool updates_per_bucket() const { return per_bucket_; }
  [[nodiscard]] bool is_ready(int bucket) const { return at(bucket).ready; }
  [[nodiscard]] bool is_stepped(int bucket) const { return at(bucket).stepped; }
  // The update of this step is left to the next forward; or that of the last step to this one.
  [[nodiscard]] bool postpones(int bucket) const { return at(bucket).postpones; }
  [[nodiscard]] bool is_postponed(int bucket) const { return at(bucket).postponed; }
  // Forward may not use the bucket yet.
  [[nodiscard]] bool must_wait(int bucket) const;
  // Flights of earlier steps that are not over, in order of issue.
  [[nodiscard]] std::vector<FlightId> delayed() const;
  // The gradient of a bucket that is scattered over its group until the next forward; the scatter.
  [[nodiscard]] const Flight* scattered(int bucket) const;
  // Ends flights without a merge.
  void forget(FlightId flight);
  // Other buckets from now on: nothing is under way, and all updates are postponed or none is.
  void reset(int buckets, bool postponed);

 private:
  struct Bucket {
    bool forward = false;
    bool ready = false;
    bool before_step = false;
    bool stepped = false;
    bool postpones = false;
    bool postponed = false;
    std::vector<Flight> flights;  // under way, in order of issue
  };
  [[nodiscard]] const Bucket& at(int bucket) const;
  Bucket& at(int bucket);
  [[nodiscard]] bool starts_at(const Bucket& of, Point point) const;
  [[nodiscard]] static bool goes_on(const Bucket& of, const Flight& flight);
  void merge_due(int bucket, Point point, Actions& actions);
  void start_at(int bucket, Point point, Actions& actions) const;
  void pass_before_forward(int bucket, Actions& actions);
  void pass_ready(int bucket, Actions& actions);
  void pass_backward_done(Actions& actions);
  void pass_before_step(int bucket, Actions& actions);
  void pass_stepped(int bucket, Actions& actions);

  Rank self_;
  Step step_ = -1;
  bool backward_done_ = false;
  bool per_bucket_ = false;
  std::vector<Bucket> at_;
};

}  // namespace riffle::schedule
