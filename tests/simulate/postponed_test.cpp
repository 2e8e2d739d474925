// An update waits for its gradient, wherever that is merged.
#include <gtest/gtest.h>

#include "simulate/simulator.h"
#include "testing.h"

namespace riffle::simulator {
namespace {

// When two steps are over, where only the first exchanges, after backward, and nothing overlaps.
double two_steps(const Due& due, Start start = Start::backward_done) {
  Trace trace = testing::small_trace();
  trace.optimizer_step = milliseconds(5);
  const Cluster cluster = parse_cluster("flat:4,latency=50us,bandwidth=1Gbps");
  const Exchange exchange{.group = World(cluster).ranks(), .start = start, .due = due};
  const NamedStrategy strategy = testing::one_exchange(exchange);
  const std::vector<Change> none;
  Simulator simulator({.trace = trace,
                       .cluster = cluster,
                       .planned = cluster,
                       .strategy = *strategy.strategy,
                       .changes = none});
  simulator.run_until(2);
  return simulator.mean_begin(2);
}

TEST(Postponed, UpdatesTakeAsLongWhereverTheyAreMade) {
  const double at_once = two_steps(before_step());
  // Compute of two steps, and 4 MB over 1 Gbps at least.
  EXPECT_GT(at_once, 2 * (4 * 0.003 + 0.005) + 0.032);
  EXPECT_NEAR(two_steps(after_step()), at_once, 1e-12);
  EXPECT_NEAR(two_steps(before_forward()), at_once, 1e-12);
}

TEST(Postponed, AnUpdateInTheNextStepIsMadeBesideItsOwn) {
  // Forward and backward hide the exchange; both updates are made when it is there.
  const double compute = 2 * (4 * 0.003 + 0.005);
  EXPECT_GE(two_steps(before_step(1)), compute);
  EXPECT_LT(two_steps(before_step(1)), two_steps(before_step()));
}

}  // namespace
}  // namespace riffle::simulator
