// A session at work: what was agreed on, the values, their steps, and what watches them.
#pragma once

#include "riffle/session.h"
#include "runtime/agreement.h"
#include "runtime/checkpoint.h"
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
  // The parameter itself; UsageError where there is none of that number.
  [[nodiscard]] int checked(int parameter) const;

  // The order is that of construction: what runs ends before what it uses.
  std::unique_ptr<runtime::Exchanger> exchanger;
  NamedStrategy named;
  ModelSpec model;
  SessionOptions options;
  runtime::Agreement agreed;
  std::optional<CostModel> cost;  // always there; made anew with the world
  BucketPlan plan;
  schedule::Needs needs;
  runtime::Recorder recorder;
  runtime::Values values;
  runtime::Steps steps;
  schedule::Overlap overlap;
  bool is_measured = false;  // buckets were made from measured times
  std::vector<Sensed> sensed;
  std::optional<runtime::Sensing> sensing;

 private:
  [[nodiscard]] runtime::Identity identity() const;
  void begin_step(Step step, bool forward = false);
  void broadcast_model();
  // Where all workers have the same parameters they are their average, bit for bit.
  [[nodiscard]] std::size_t first_to_average() const;
  bool move_to(Trace trace, BucketPlan next);

  // --- For what watches.
  [[nodiscard]] Step step() const override { return steps.machine().step(); }
  [[nodiscard]] const Strategy& strategy() const override { return *named.strategy; }
  [[nodiscard]] const World& world() const override { return agreed.world; }
  [[nodiscard]] const BucketPlan& buckets() const override { return values.layout().buckets; }
  [[nodiscard]] bool is_under_way(Step step, int lane) const override;
  void come_to_rest() override;
  bool change_world(Cluster cluster) override;
  void log(std::string what) override;
};

}  // namespace riffle
