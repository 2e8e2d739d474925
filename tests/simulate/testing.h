// Small programs for tests of the simulator.
#pragma once

#include "riffle/simulate.h"

namespace riffle::testing {

// A model of `layers` equal layers.
inline Trace small_trace(int layers = 4, std::int64_t elements = 250'000,
                         Seconds forward = milliseconds(1), Seconds backward = milliseconds(2)) {
  Trace trace{.model = "small", .layers = {}, .source = "made up"};
  for (int i = 0; i < layers; ++i)
    trace.layers.push_back({"layer" + std::to_string(i), elements, forward, backward});
  return trace;
}

// One exchange of everything in step 0, none later.
class OneExchange : public Strategy {
 public:
  explicit OneExchange(Exchange exchange) : exchange_(std::move(exchange)) {}
  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& /*cost*/,
                                   const World& /*world*/) const override {
    return one_bucket(trace);
  }
  [[nodiscard]] Program program(Step step, const World& /*world*/,
                                const BucketPlan& /*buckets*/) const override {
    return step == 0 ? Program{{exchange_}} : Program{};
  }
  [[nodiscard]] Traits traits(const World& /*world*/) const override { return {.period = 0}; }

 private:
  Exchange exchange_;
};

inline NamedStrategy one_exchange(Exchange exchange) {
  return {"one", {}, "one", std::make_shared<OneExchange>(std::move(exchange))};
}

inline Simulation simulate_spec(const Trace& trace, const Cluster& cluster, const std::string& spec,
                                const SimulateOptions& options = {}) {
  return simulate(trace, cluster, StrategyTable::builtin().make(spec), options);
}

}  // namespace riffle::testing
