// The workers: each computes on its own clock, starts exchanges lane by lane as the program allows,
// and waits where a result is due.
//
// A step of one worker: forward, bucket by bucket, each after what is due before it; backward,
// which makes buckets ready one after the other; the optimizer, once everything due before it is
// merged (or bucket by bucket during backward, where the program starts exchanges at
// bucket_stepped); what is due after the step. Then the next step, whatever others do.
//
// Around it: progress.h says which points a worker has passed, dues.h what it waits for, lanes.h
// runs its exchanges, record.h keeps what is shown.
#pragma once

#include <functional>

#include "simulate/dues.h"
#include "simulate/lanes.h"

namespace riffle::simulator {

class Workers : public Collectives::Listener {
 public:
  struct Setup {
    const Trace& trace;
    const Cluster& cluster;
    const BucketPlan& buckets;
    Seconds optimizer{};
    int window = 2;  // exchanges are due fewer steps later than this
    std::uint64_t seed = 0;
    std::function<std::shared_ptr<const StepPlan>(Step)> plan_of;
  };
  Workers(Setup setup, EventQueue& queue, Network& network);

  // Starts every worker at time zero.
  void start();
  // True when every worker has begun `step`.
  [[nodiscard]] bool begun(Step step) const { return record_.begun(step) == count_; }

  // What the events of these names call.
  void lane_event(int id, double now) { lanes_.event(id, now); }
  void compute_event(int worker, double now) { run(worker, now); }
  Collectives& collectives() { return collectives_; }
  void member_done(std::int64_t owner, int member, double now) override;

  // From the worker's next step on.
  void set_slow(Rank rank, double factor) { progress_[rank].slow = factor; }

  Record& record() { return record_; }
  [[nodiscard]] const Record& record() const { return record_; }
  // Who waits for what, for the error of a program that cannot go on.
  [[nodiscard]] std::string stuck() const { return lanes_.stuck(); }

 private:
  void begin_step(int worker, double now);
  void enter(int worker, Step step);
  void add_step();

  void run(int worker, double now);
  bool run_forward(int worker, double now);
  void start_backward(int worker);
  bool run_backward(int worker, double now);
  void update_bucket(int worker, int bucket);
  bool run_updates(int worker, double now);
  bool run_optimizer(int worker, double now);
  bool run_merge(int worker, double now);
  // The time of the updates that were postponed to such a point of this step.
  double postponed_updates(int worker, DuePoint point);

  // Waits until `worker.clock`; false where that is still ahead.
  bool reached(int worker, double now);
  bool block(int worker, double now);
  [[nodiscard]] bool must_wait(int worker) const;
  [[nodiscard]] bool waits(DuePoint point, int worker) const {
    return dues_.left(point, progress_[worker].step, worker) > 0;
  }
  [[nodiscard]] bool waits(DuePoint point, int worker, int bucket) const {
    return dues_.left(point, progress_[worker].step, worker, bucket) > 0;
  }

  Setup setup_;
  EventQueue& queue_;
  int count_;
  int buckets_;
  BucketTimes times_;
  Progress progress_;
  Dues dues_;
  Steps steps_;
  Record record_;
  Collectives collectives_;
  Lanes lanes_;
};

}  // namespace riffle::simulator
