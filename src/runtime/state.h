// A session at work: what was agreed on, the values, their steps, and what watches them.
#pragma once

#include <map>

#include "riffle/session.h"
#include "runtime/checkpoint.h"
#include "runtime/planning.h"
#include "runtime/sense.h"
#include "runtime/steps.h"
#include "schedule/overlap.h"

namespace riffle {

class Session::State final : private runtime::Watched {
 public:
  State(std::unique_ptr<runtime::Exchanger> by, NamedStrategy strategy, ModelSpec model,
        SessionOptions options);
  ~State() override;

  void end_step();
  // Also between steps; see session.h.
  void finish();
  void averaged(std::span<std::byte* const> into);
  double consensus_distance();
  double gradient_norm();
  void scale_gradients(double factor);
  std::vector<std::byte> save();
  bool relayout();
  [[nodiscard]] Trace trace() const;
  [[nodiscard]] std::optional<Plan> measured_plan() const;
  // Updates of the step under way are left to the next forward.
  [[nodiscard]] bool postpones() const { return overlap.postpones() && !left; }
  // The parameter itself; UsageError where there is none of that number.
  [[nodiscard]] int checked(int parameter) const;

  // The order is that of construction: what runs ends before what it uses.
  std::unique_ptr<runtime::Exchanger> exchanger;
  ModelSpec model;
  SessionOptions options;
  std::string asked;  // the strategy's spec, also where it is "auto"
  std::optional<runtime::Resumed> resumed;
  runtime::Running running;
  runtime::Agreement agreed;
  std::optional<CostModel> cost;  // always there; made anew with the world
  BucketPlan plan;
  schedule::Needs needs;
  runtime::Recorder recorder;
  runtime::Values values;
  runtime::Steps steps;
  schedule::Overlap overlap;
  std::map<std::string, Seconds> measured_steps;  // by spec, of strategies that ran before
  // What was decided and waits for a step at which nothing is on its way.
  struct Next {
    Step from = 0;
    NamedStrategy strategy;
    Trace trace;
    BucketPlan buckets;
    std::optional<World> world{};  // where it is another one
    std::string why{};             // where it was planned again
    bool moves = true;             // memory: only relayout() may do it
  };
  std::optional<Next> next;
  // Updates are made in their own step, so that another strategy can begin: from the next step on,
  // and in the one under way.
  bool leaving = false;
  bool left = false;
  std::vector<Sensed> sensed;
  std::optional<runtime::Sensing> sensing;

 private:
  [[nodiscard]] runtime::Identity identity() const;
  void begin_step(Step step, bool forward = false);
  void broadcast_model();
  void start_lasting(bool equal);
  void serve();
  // Where values are served: all ranks get them as their owners hold them.
  void gather_served();
  // Where all workers have the same parameters they are their average, bit for bit.
  [[nodiscard]] std::size_t first_to_average() const;
  // Another strategy, or other buckets, from the step under way on.
  bool change_to(NamedStrategy then, Trace on, BucketPlan others);
  // Makes the change that has been decided where its step has come. True: memory has moved.
  bool change();
  void set_world(World to);
  // Other groups among the same ranks, with the same buckets. False: other things would travel.
  bool change_world(World changed);
  void look_at_measured();
  void average_over_workers();
  // What to run from now on; says why.
  NamedStrategy make_plan(const Trace& on, const World& in);
  [[nodiscard]] BucketPlan buckets_for(const NamedStrategy& strategy, const Trace& on,
                                       const World& in) const;
  [[nodiscard]] std::string compare(const Next& with);
  void write_profile();

  // --- For what watches.
  [[nodiscard]] Step step() const override { return steps.machine().step(); }
  [[nodiscard]] const Strategy& strategy() const override { return *running.strategy.strategy; }
  [[nodiscard]] const World& world() const override { return agreed.world; }
  [[nodiscard]] const BucketPlan& buckets() const override { return values.layout().buckets; }
  [[nodiscard]] bool is_under_way(Step step, int lane) const override;
  [[nodiscard]] bool is_changing() const override { return next.has_value(); }
  void come_to_rest() override;
  void plan_again(Cluster cluster, double tempo, const std::string& why) override;
  void log(std::string what) override;
};

}  // namespace riffle
