// What the mixer makes of every strategy's programs, against an independent reading of them and
// against what papers prove.
#include <gtest/gtest.h>

#include <cmath>

#include "converge/workers.h"
#include "refusal.h"
#include "riffle/random.h"
#include "runtime/interpreter.h"
#include "schedule/schedule.h"

namespace riffle::convergence {
namespace {

Trace toy_trace() {
  Trace trace;
  for (const std::int64_t size : test::kSizes)
    trace.layers.push_back({"layer" + std::to_string(size), size, Seconds(1e-3), Seconds(2e-3)});
  return trace;
}

Cluster racks(int n) {
  const std::string links = "latency=50us,bandwidth=10Gbps";
  if (n % 2 != 0 || n == 2) return parse_cluster("flat:" + std::to_string(n) + "," + links);
  return parse_cluster("racks:2x" + std::to_string(n / 2) + ",inner=20us/10Gbps,outer=200us/1Gbps");
}

ConvergeOptions toy_options() {
  return {.learning_rate = test::kRate, .momentum = test::kMomentum};
}

Matrix train_toy(const NamedStrategy& strategy, const World& world, int steps) {
  const Trace trace = toy_trace();
  const BucketPlan buckets = strategy->buckets(trace, CostModel(world.cluster), world);
  const auto programs = schedule::programs_of(*strategy.strategy, world, buckets);
  Workers workers(world.size(), test::toy_start(1),
                  columns_of(buckets, trace, test::toy_elements()),
                  schedule::needs_of(programs).outer, toy_options());
  const Learn learn = [](int i, Step step, const double* x, double* gradient) {
    const test::Vector found =
        test::toy_gradient(test::Vector(x, x + test::toy_elements()), i, step);
    std::ranges::copy(found, gradient);
    return 0.0;
  };
  for (Step step = 0; step < steps; ++step)
    workers.step(schedule::program_of(*strategy.strategy, step, world, buckets), learn);
  return workers.weights();
}

class MixerOf : public testing::TestWithParam<int> {};

// The interpreter is what sessions on real memory are compared with, so this is what they do.
TEST_P(MixerOf, EveryStrategyIsWhatItsProgramsMean) {
  constexpr int kSteps = 30;
  const World world(racks(GetParam()));
  const StrategyTable table = StrategyTable::builtin();
  std::vector<std::string> specs{"sesgd:mix_state=true,bucket=layer",
                                 "sesgd:order=combine-then-adapt,bucket=layer,mix_state=true",
                                 "sesgd:group=2,schedule=random,every=2",
                                 "gossip:order=combine-then-adapt,mix_state=true",
                                 "ds-sync:pattern=bottleneck,delay=3,bucket=layer",
                                 "dear:bucket=200B",
                                 "dasgd:tau=2,delay=2,merge=mix,xi=0.5",
                                 "local-sgd:tau=3,mix_state=true",
                                 "diloco:tau=5",
                                 "diloco:tau=7,fragments=3,overlap=2,xi=0.3",
                                 "diloco:tau=5,fragments=2,overlap=2,mix_state=true",
                                 "slowmo:tau=4",
                                 "noloco:tau=3",
                                 "ssp:staleness=0"};
  for (const StrategyInfo& info : table.all())
    for (const std::string& spec : info.specs())
      if (spec.find("delay=auto") == std::string::npos && spec != "ds-sync:pattern=bottleneck" &&
          !table.make(spec)->traits(world).timed)
        specs.push_back(spec);  // what is automatic looks at buckets, which the reference has not
  for (const std::string& spec : specs) {
    const NamedStrategy strategy = table.make(spec);
    const auto expected = test::interpret(strategy, world, kSteps);
    const Matrix weights = train_toy(strategy, world, kSteps);
    for (std::size_t i = 0; i < expected.size(); ++i)
      for (std::size_t k = 0; k < expected[i].size(); ++k)
        ASSERT_NEAR(weights.row(i)[k], expected[i][k], 1e-11) << spec << " rank " << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Workers, MixerOf, testing::Values(1, 2, 3, 4, 6, 8, 16));

// ---- mixing alone: no learning

Workers resting(int n, std::size_t columns) {
  return {n, std::vector<double>(columns), {{0, columns}}, false, {.learning_rate = 0}};
}

void scatter(Matrix& weights, Random& random) {
  for (std::size_t i = 0; i < weights.rows(); ++i)
    for (std::size_t k = 0; k < weights.columns(); ++k) weights.row(i)[k] = random.normal();
}

double disagreement(const Matrix& weights) {
  const std::vector<double> mean = mean_row(weights);
  double sum = 0;
  for (std::size_t i = 0; i < weights.rows(); ++i)
    for (std::size_t k = 0; k < mean.size(); ++k) sum += std::pow(weights.row(i)[k] - mean[k], 2);
  return sum;
}

const Learn kNothing = [](int, Step, const double*, double* gradient) {
  gradient[0] = 0;  // the rate is zero: whatever the others are, nothing is learned
  return 0.0;
};

TEST(Mixer, DigitsAgreeExactlyInLogSteps) {
  struct Case {
    int n, group, steps;
  };
  for (const auto& [n, group, steps] :
       {Case{16, 4, 2}, Case{16, 2, 4}, Case{27, 3, 3}, Case{64, 8, 2}, Case{64, 4, 3}}) {
    const World world(parse_cluster(fmt::format("flat:{},latency=50us,bandwidth=10Gbps", n)));
    const auto strategy = StrategyTable::builtin().make(fmt::format("sesgd:group={}", group));
    Workers workers = resting(n, 5);
    Random random(3);
    scatter(workers.weights(), random);
    const std::vector<double> mean = mean_row(workers.weights());
    for (Step step = 0; step < steps; ++step) {
      EXPECT_GT(disagreement(workers.weights()), 1e-3) << n << "/" << group;
      workers.step(strategy->program(step, world, test::any_bucket()), kNothing);
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
      for (std::size_t k = 0; k < mean.size(); ++k) {
        EXPECT_EQ(workers.weights().row(i)[k], workers.weights().row(0)[k]);
        EXPECT_NEAR(workers.weights().row(i)[k], mean[k], 1e-15);
      }
  }
}

TEST(Mixer, RandomGroupsContractAsProved) {
  for (const auto& [n, group] : {std::pair{16, 2}, {16, 4}, {16, 8}, {64, 8}, {256, 16}}) {
    const World world(parse_cluster(fmt::format("flat:{},latency=50us,bandwidth=10Gbps", n)));
    const auto strategy =
        StrategyTable::builtin().make(fmt::format("sesgd:group={},schedule=random", group));
    constexpr int kDraws = 1500;
    Workers workers = resting(n, 1);
    Random random(7);
    double sum = 0;
    double squares = 0;
    for (Step step = 0; step < kDraws; ++step) {
      scatter(workers.weights(), random);
      const double before = disagreement(workers.weights());
      workers.step(strategy->program(step, world, test::any_bucket()), kNothing);
      const double left = disagreement(workers.weights()) / before;
      sum += left;
      squares += left * left;
    }
    const double mean = sum / kDraws;
    const double error = std::sqrt((squares / kDraws - mean * mean) / kDraws);
    const double proved = static_cast<double>(n - group) / (group * (n - 1.0));
    EXPECT_NEAR(mean, proved, 3 * error) << n << "/" << group;
    EXPECT_LT(error, 0.05 * proved);
  }
}

TEST(Mixer, RefusesWhatNoWorkerCanRun) {
  Workers workers = resting(4, 2);
  Program program;
  program.add({.payload = Payload::weight,
               .group = {0, 1, 2, 3},
               .start = Start::step_done,
               .due = before_forward(),
               .wire = Wire::bf16});
  EXPECT_THAT(refusal([&] { workers.step(program, kNothing); }), testing::HasSubstr("wire=f32"));
}

}  // namespace
}  // namespace riffle::convergence
