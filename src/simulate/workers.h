// The workers: each computes on its own clock, starts exchanges lane by lane as the program allows,
// and waits where a result is due.
//
// A step of one worker: forward, bucket by bucket, each after what is due before it; backward,
// which makes buckets ready one after the other; the optimizer, once everything due before it is
// merged (or bucket by bucket during backward, where the program starts exchanges at
// bucket_stepped); what is due after the step. Then the next step, whatever others do.
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "riffle/timeline.h"
#include "simulate/collectives.h"
#include "simulate/step_plan.h"

namespace riffle {

// Compute times of a trace by bucket, in seconds of a healthy worker.
struct BucketTimes {
  std::vector<double> forward;
  std::vector<double> backward;
  std::vector<double> ready;  // its gradient, from the start of backward (running sum of backward)
  std::vector<double> update;
  double all_forward = 0;
  double all_backward = 0;
  double all_update = 0;
};
BucketTimes bucket_times(const Trace& trace, const BucketPlan& buckets, Seconds optimizer);

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
  [[nodiscard]] bool begun(Step step) const;
  // The mean time at which workers began a step that all have begun.
  [[nodiscard]] double mean_begin(Step step) const;

  void lane_event(int id, double now);
  void compute_event(int worker, double now);
  Collectives& collectives() { return collectives_; }
  void member_done(std::int64_t owner, int member, double now) override;

  // From the worker's next step on.
  void set_slow(Rank rank, double factor) { workers_[rank].slow = factor; }

  // What worker 0 saw of the exchanges of a step; times from the beginning.
  struct Seen {
    int exchange = 0;
    double start = 0;
    double end = -1;  // below zero: not yet
  };
  struct SeenStep {
    double begin = 0;
    std::shared_ptr<const StepPlan> plan;
    std::vector<Seen> exchanges;
  };
  [[nodiscard]] const std::map<Step, SeenStep>& seen() const { return seen_; }

  // Records what workers below `ranks` do from `from` on.
  void record(Timeline& timeline, Rank ranks, Step from);
  // Who waits for what, for the error of a program that cannot go on.
  [[nodiscard]] std::string stuck() const;

 private:
  // A time that has not come yet.
  static constexpr double kUnknown = std::numeric_limits<double>::infinity();

  enum class Phase { forward, backward, updates, optimizer, merge, ended };

  struct Worker {
    Step step = -1;
    // Of that step, which is no longer active once its exchanges are done.
    std::shared_ptr<const StepPlan> plan{};
    Phase phase = Phase::ended;
    bool blocked = false;
    bool at_ready = false;  // backward has come to the bucket at `cursor`
    int cursor = 0;         // bucket
    double clock = 0;       // where its computation has come to; may be ahead of the simulation
    double noise = 1;
    double slow = 1;
    double factor = 1;  // of this step's compute times
    double backward_start = 0;
    double backward_end = 0;
    double blocked_since = 0;
    std::vector<int> deferred;  // buckets whose update waits for a merge
  };
  struct Lane {
    Step step = 0;
    int position = 0;
    bool busy = false;
    double armed = -1;  // the event that counts
    double joined = 0;  // when what it is busy with began
  };
  struct ActiveStep {
    std::shared_ptr<const StepPlan> plan;
    std::vector<int> collective;  // of each exchange; -1 before it is opened
    std::vector<char> done;       // of each item, where the plan is chained
    int entered = 0;
    std::int64_t left = 0;  // items
  };

  void begin_step(int worker, double now);
  void enter(int worker, Step step);
  void draw_noise(int worker);
  void run(int worker, double now);
  bool run_forward(int worker, double now);
  void start_backward(int worker);
  bool run_backward(int worker, double now);
  void update_bucket(int worker, int bucket);
  bool run_updates(int worker, double now);
  bool run_optimizer(int worker, double now);
  bool run_merge(int worker, double now);
  // Waits until `worker.clock`; false where that is still ahead.
  bool reached(int worker, double now);
  bool block(int worker, double now);
  [[nodiscard]] bool must_wait(int worker) const;
  bool take_postponed(int worker, int bucket);

  void poke_all(int worker, double now);
  void poke(int worker, int lane, double now);
  [[nodiscard]] double start_time(int worker, Step step, const Exchange& exchange) const;
  void join(int worker, ActiveStep& active, Step step, int item, double now);
  ActiveStep& active(Step step) { return active_[static_cast<std::size_t>(step - oldest_)]; }
  void drop_finished_steps();

  [[nodiscard]] std::size_t slot(DuePoint point, Step step, int worker) const;
  [[nodiscard]] int pending(DuePoint point, int worker, int bucket) const;
  [[nodiscard]] int pending(DuePoint point, int worker) const;
  void add_due(const Exchange& exchange, Step step, int worker, int count);

  // `bucket` is added to the name unless it is below zero.
  void note(EventKind kind, const char* what, int bucket, int worker, double start, double end);
  void note_layers(EventKind kind, int worker, int bucket, double start);

  Setup setup_;
  EventQueue& queue_;
  Collectives collectives_;
  BucketTimes times_;
  int count_;
  int buckets_;
  int lanes_ = 0;
  std::vector<Worker> workers_;
  std::vector<Lane> lane_states_;  // lane * workers + worker
  std::deque<ActiveStep> active_;
  Step oldest_ = 0;  // of active_
  // Exchanges that are due, by point, step modulo window, worker, (bucket).
  std::vector<std::uint8_t> due_;
  std::vector<int> due_total_;
  std::vector<char> postponed_;     // by step modulo window, worker and bucket; if any
  std::vector<double> ready_at_;    // by worker and bucket, where the optimizer steps by bucket
  std::vector<double> stepped_at_;  // the same
  std::vector<int> begun_count_;
  std::vector<double> begun_sum_;
  std::map<Step, SeenStep> seen_;
  Timeline* timeline_ = nullptr;
  Rank recorded_ = 0;
  Step record_from_ = 0;
};

}  // namespace riffle
