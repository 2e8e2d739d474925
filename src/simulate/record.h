// What a run shows of itself: when steps began, what worker 0 saw of exchanges, and a timeline.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "riffle/timeline.h"
#include "simulate/progress.h"

namespace riffle::simulator {

// What worker 0 saw of the exchanges of a step; times from the beginning.
struct SeenExchange {
  int exchange = 0;
  double start = 0;
  double end = -1;  // below zero: not yet
};
struct SeenStep {
  double begin = 0;
  std::shared_ptr<const StepPlan> plan;
  std::vector<SeenExchange> exchanges;
};

class Record {
 public:
  Record(int workers, const Trace& trace, const BucketPlan& buckets, const Progress& progress)
      : workers_(workers), trace_(trace), buckets_(buckets), progress_(progress) {}

  // Keeps what workers below `ranks` do from `from` on.
  void keep(Timeline& timeline, Rank ranks, Step from);

  // The worker has begun its present step.
  void began(int worker, double now);
  // How many workers have begun a step.
  [[nodiscard]] int begun(Step step) const {
    return step < static_cast<Step>(begun_.size()) ? begun_[step].workers : 0;
  }
  // The mean time at which workers began a step that all have begun.
  [[nodiscard]] double mean_begin(Step step) const { return begun_[step].sum / workers_; }
  [[nodiscard]] const std::map<Step, SeenStep>& seen() const { return seen_; }

  void exchange_started(int worker, Step step, int exchange, double now);
  void exchange_ended(int worker, Step step, int exchange, const PlannedExchange& what,
                      double start, double now);

  // `bucket` is added to the name unless it is below zero.
  void note(EventKind kind, const char* what, int bucket, int worker, double start, double end);
  void note_layers(EventKind kind, int worker, int bucket, double start);

 private:
  struct Begun {
    int workers = 0;
    double sum = 0;  // of times
  };

  [[nodiscard]] bool keeps(int worker, Step step) const {
    return timeline_ != nullptr && worker < ranks_ && step >= from_;
  }

  int workers_;
  const Trace& trace_;
  const BucketPlan& buckets_;
  const Progress& progress_;
  std::vector<Begun> begun_;
  std::map<Step, SeenStep> seen_;
  Timeline* timeline_ = nullptr;
  Rank ranks_ = 0;
  Step from_ = 0;
};

}  // namespace riffle::simulator
