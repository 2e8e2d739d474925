// The event loop: workers, collectives and the network on one clock.
#pragma once

#include "riffle/simulate.h"
#include "simulate/workers.h"

namespace riffle::simulator {

class Simulator {
 public:
  struct Setup {
    const Trace& trace;
    const Cluster& cluster;
    const Cluster& planned;  // what the strategy plans for
    const Strategy& strategy;
    std::uint64_t seed = 0;
    const std::vector<Change>& changes;
    Step first = 0;  // the strategy's step that is step 0 here
  };
  explicit Simulator(const Setup& setup);

  // Until every worker has begun `step`. Others may be ahead: nobody is held.
  void run_until(Step step);
  // From the beginning to where the workers began a step, mean over them.
  [[nodiscard]] double mean_begin(Step step) const { return workers_.record().mean_begin(step); }

  // What it shows of itself.
  Record& record() { return workers_.record(); }
  [[nodiscard]] const Record& record() const { return workers_.record(); }
  [[nodiscard]] const Traits& traits() const { return traits_; }
  [[nodiscard]] const World& world() const { return world_; }
  [[nodiscard]] const BucketPlan& buckets() const { return buckets_; }
  // Sent by all workers in steps [from, to), which must have begun.
  [[nodiscard]] double bytes(Step from, Step to) const;
  [[nodiscard]] double messages(Step from, Step to) const;
  // What the simulation itself took, from the beginning.
  [[nodiscard]] std::int64_t events() const { return events_; }
  [[nodiscard]] std::int64_t rate_changes() const { return network_.rate_changes(); }

 private:
  std::shared_ptr<const StepPlan> plan_of(Step step);
  void schedule_changes(const std::vector<Change>& changes);
  void apply(const Change& change);
  void apply(const Change& change, LinkId link);
  [[nodiscard]] int way_up(LinkId link) const;

  const Trace& trace_;
  const Cluster& cluster_;
  const Strategy& strategy_;
  Step first_;
  World world_;
  CostModel cost_;
  BucketPlan buckets_;
  Traits traits_;
  EventQueue queue_;
  Network network_;
  MessagePlans messages_;
  std::map<Step, std::shared_ptr<const StepPlan>> plans_;  // of one period
  std::vector<std::pair<double, double>> traffic_;         // bytes and messages of each step
  std::vector<Change> changes_;
  struct Variable {
    double bandwidth = 0;
    double load = 0;  // of others
    bool cut = false;
  };
  std::map<int, Variable> variables_;  // links that change, by their way up
  Workers workers_;
  bool started_ = false;
  std::int64_t events_ = 0;
};

}  // namespace riffle::simulator
