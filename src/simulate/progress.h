// How far the workers have come: which points of their step they have passed, and when.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "schedule/points.h"
#include "simulate/bucket_times.h"
#include "simulate/step_plan.h"

namespace riffle::simulator {

// A time that has not come yet.
inline constexpr double kUnknown = std::numeric_limits<double>::infinity();

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
  double slow = 1;
  double factor = 1;  // of this step's compute times
  double backward_start = 0;
  double backward_end = 0;
  double blocked_since = 0;
  std::vector<int> deferred;  // buckets whose update waits for a merge
};

class Progress {
 public:
  Progress(int workers, const BucketTimes& times)
      : times_(times), buckets_(times.ready.size()), workers_(static_cast<std::size_t>(workers)) {}

  [[nodiscard]] Worker& operator[](int worker) { return workers_[worker]; }
  [[nodiscard]] const Worker& operator[](int worker) const { return workers_[worker]; }

  // When a worker passed a point of a step that it has begun, for a bucket; kUnknown where it has
  // not. Points that lie before the worker's present step were passed at time zero, as it were.
  [[nodiscard]] double passed(int worker, Step step, schedule::Point point, int bucket) const;

  // Some step updates bucket by bucket: keep times for each.
  void keep_buckets() {
    if (keeps_buckets()) return;
    ready_at_.assign(workers_.size() * buckets_, kUnknown);
    stepped_at_ = ready_at_;
  }
  [[nodiscard]] bool keeps_buckets() const { return !stepped_at_.empty(); }
  // No bucket of the worker's new step is updated yet.
  void clear_buckets(int worker);
  void set_ready(int worker, int bucket, double time) { ready_at_[place(worker, bucket)] = time; }
  // Updated; with `merges` outstanding it counts as stepped when they are there.
  void set_stepped(int worker, int bucket, double time, bool merges) {
    stepped_at_[place(worker, bucket)] = merges ? -time : time;
  }
  void set_merged(int worker, int bucket, double time);

 private:
  [[nodiscard]] std::size_t place(int worker, int bucket) const {
    return static_cast<std::size_t>(worker) * buckets_ + bucket;
  }

  const BucketTimes& times_;
  std::size_t buckets_;
  std::vector<Worker> workers_;
  // By worker and bucket, where the optimizer steps by bucket.
  std::vector<double> ready_at_;
  std::vector<double> stepped_at_;  // below zero while merges are outstanding
};

}  // namespace riffle::simulator
