// Weights that are served (asp, ssp), by the clocks of the workers.
#include "converge/serving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "refusal.h"
#include "riffle/converge.h"

namespace riffle {
namespace {

const ProblemOptions kNetwork{.data = "synthetic", .layers = "24-12-4", .batch = 4, .seed = 5};

Convergence run(const std::string& spec, const std::string& cluster,
                const ConvergeOptions& options) {
  const World world(parse_cluster(cluster));
  const auto problem = make_problem(kNetwork, world.size());
  return converge(*problem, world, problem->trace(), StrategyTable::builtin().make(spec), options);
}

const std::string kEight = "flat:8,latency=50us,bandwidth=10Gbps";

TEST(ServedWeights, WithZeroAreThoseOfSynchronousSgd) {
  const ConvergeOptions options{.steps = 30, .every = 1};
  const Convergence bsp = run("bsp", kEight, options);
  // However slow somebody is.
  for (const std::string more : {"", ",slow=3*2.5"}) {
    const Convergence found = run("ssp:staleness=0", kEight + more, options);
    for (std::size_t i = 0; i < bsp.loss.size(); ++i)
      EXPECT_NEAR(found.loss[i], bsp.loss[i], 1e-10) << i;
    EXPECT_EQ(found.accuracy, bsp.accuracy);
  }
}

TEST(ServedWeights, SameSeedSameCurve) {
  for (const char* spec : {"asp", "ssp"}) {
    const std::vector<Convergence> a{run(spec, kEight + ",slow=1*3", {.steps = 20})};
    const std::vector<Convergence> b{run(spec, kEight + ",slow=1*3", {.steps = 20})};
    EXPECT_EQ(to_json(a), to_json(b)) << spec;
  }
}

// Stale pushes add momentum of their own: rates that synchronous SGD bears break it.
TEST(ServedWeights, StalenessCostsRate) {
  const auto rate_of = [](const std::string& spec) {
    const World world(parse_cluster(kEight));
    const NamedStrategy strategy = StrategyTable::builtin().make(spec);
    const auto problem = make_problem(kNetwork, world.size());
    return theory_of(strategy, world, problem->trace(), 0.9).rate_bound.value();
  };
  EXPECT_NEAR(rate_of("ssp:staleness=0") / rate_of("bsp"), 1, 0.02);
  EXPECT_LT(rate_of("asp"), 0.9 * rate_of("bsp"));
}

using convergence::Matrix;
using convergence::Serving;

// Workers that add 1 in every step: what is held counts the steps of all.
struct Counted {
  Matrix weights{4, 1};
  Serving serving;
  std::vector<int> steps = std::vector<int>(4);

  Counted(int ahead, std::vector<double> slow) : serving(weights, ahead, std::move(slow)) {}
  void run(int count) {
    for (int i = 0; i < count; ++i) {
      const int worker = serving.next();
      EXPECT_EQ(serving.step_of(worker), steps[worker]);
      ++steps[worker];
      weights.row(static_cast<std::size_t>(worker))[0] += 1;
      serving.sent(worker, weights);
    }
  }
};

TEST(ServedWeights, TheSlowMakeFewerStepsAndNothingIsLost) {
  Counted free(-1, {1, 1, 1, 5});
  free.run(320);
  EXPECT_EQ(free.steps, (std::vector<int>{100, 100, 100, 20}));
  free.serving.finish(free.weights);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(free.weights.row(i)[0], 80);

  Counted bound(3, {1, 1, 1, 5});
  bound.run(320);
  for (const int each : bound.steps) {
    EXPECT_LE(each, bound.steps[3] + 4);  // the last of them is not answered yet
    EXPECT_GE(each, bound.steps[3]);
  }
  bound.serving.finish(bound.weights);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(bound.weights.row(i)[0], 80);
}

TEST(ServedWeights, AreServedToAllAndNothingElseIs) {
  const Exchange served{.payload = Payload::weight,
                        .group = {0, 1, 2, 3},
                        .collective = Collective::serve,
                        .ahead = 2,
                        .start = Start::bucket_stepped,
                        .due = before_forward()};
  EXPECT_EQ(convergence::served_ahead({{served}}, 4), 2);
  EXPECT_EQ(convergence::served_ahead({}, 4), std::nullopt);
  Exchange mean = served;
  mean.collective = Collective::all_reduce;
  mean.ahead = -1;
  EXPECT_EQ(convergence::served_ahead({{mean}}, 4), std::nullopt);
  const auto refused = [](std::vector<Exchange> exchanges, int workers) {
    return refusal([&] { convergence::served_ahead({std::move(exchanges)}, workers); });
  };
  EXPECT_THAT(refused({served, mean}, 4), testing::HasSubstr("nothing else"));
  EXPECT_THAT(refused({served}, 5), testing::HasSubstr("all of them"));
}

}  // namespace
}  // namespace riffle
