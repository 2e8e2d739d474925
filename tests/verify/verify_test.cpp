// What verify must show of the built-in strategies: published figures, and figures computed here by
// other means.
#include "riffle/verify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "riffle/error.h"
#include "riffle/random.h"
#include "strategies/example.h"
#include "support/programs.h"

namespace riffle::test {
namespace {

Verification check(const std::string& spec, const World& world) {
  const Verification result = verify(make(spec), world, example_trace());
  for (const Problem& problem : result.problems) ADD_FAILURE() << spec << ": " << print(problem);
  return result;
}

TEST(Verify, DigitsAreExactInAsManyStepsAsDigits) {
  EXPECT_EQ(check("sesgd:group=4", flat(16)).steps_to_consensus, 2);
  EXPECT_EQ(check("sesgd:group=3", flat(27)).steps_to_consensus, 3);
  EXPECT_EQ(check("sesgd:group=2", flat(64)).steps_to_consensus, 6);
  EXPECT_EQ(check("sesgd", flat(12)).steps_to_consensus, 2);  // 3 * 4
  EXPECT_EQ(check("sesgd:group=4", flat(16)).mixing_rate, 0);
  EXPECT_EQ(check("sesgd", flat(13)).steps_to_consensus, std::nullopt);
}

TEST(Verify, CombiningFirstIsOneStepLater) {
  EXPECT_EQ(check("sesgd:order=combine-then-adapt", flat(16)).steps_to_consensus, 3);
}

TEST(Verify, GridIsExactInTwo) {
  for (const int n : {4, 6, 9, 16, 100, 256})
    EXPECT_EQ(check("ds-sync", flat(n)).steps_to_consensus, 2) << n;
}

TEST(Verify, DelegatesContractByTheSizeOfRacks) {
  const std::string spec = "ds-sync:pattern=bottleneck,delay=0";
  EXPECT_NEAR(*check(spec, racks("4x4")).mixing_rate, 2.0 / 3, 1e-9);
  EXPECT_NEAR(*check(spec, racks("2x4")).mixing_rate, 2.0 / 3, 1e-9);
  EXPECT_NEAR(*check(spec, racks("4x8")).mixing_rate, 6.0 / 7, 1e-9);
  EXPECT_NEAR(*check(spec, racks("16x16")).mixing_rate, 14.0 / 15, 1e-9);
}

TEST(Verify, RandomGroupsShrinkTheMeanSquare) {
  EXPECT_NEAR(*check("sesgd:schedule=random,group=4", flat(16)).mixing_rate, std::sqrt(0.2), 1e-12);
  EXPECT_NEAR(*check("sesgd:schedule=random,group=2", flat(16)).mixing_rate,
              std::sqrt(14.0 / (2 * 15)), 1e-12);
  EXPECT_NEAR(*check("sesgd:schedule=random,group=16", flat(256)).mixing_rate,
              std::sqrt(240.0 / (16 * 255)), 1e-12);
  EXPECT_NEAR(*check("sesgd:schedule=random,group=4,every=5", flat(16)).mixing_rate,
              std::pow(0.2, 0.1), 1e-12);
  EXPECT_EQ(check("sesgd:schedule=random", flat(16)).period, std::nullopt);
}

TEST(Verify, GossipIsExactForPowersOfTwo) {
  for (int k = 1; k <= 8; ++k) EXPECT_EQ(check("gossip", flat(1 << k)).steps_to_consensus, k);
  // Of 7 workers every eigenvalue of a period is 1/8: (1 - w^8) / (1 - w) = 1 for w^7 = 1.
  EXPECT_NEAR(*check("gossip", flat(7)).mixing_rate, 0.5, 1e-9);
}

TEST(Verify, DelayedRacksAgreeAfterOneExchange) {
  for (const int delay : {1, 2, 5}) {
    const std::string spec = "ds-sync:pattern=bottleneck,delay=" + std::to_string(delay);
    // The racks' first average, the exchange of d steps, and its merge.
    EXPECT_EQ(check(spec, racks("4x4")).steps_to_consensus, delay + 2);
    EXPECT_EQ(check(spec, racks("3x2")).steps_to_consensus, delay + 2);
    const Verification unequal = check(spec, without(racks("3x4"), {5, 8, 9}));
    EXPECT_EQ(unequal.steps_to_consensus, delay + 2);
    EXPECT_EQ(unequal.mean_preserved, true);
  }
}

TEST(Verify, SlowHostsFollow) {
  for (const char* delay : {"0", "1", "4", "auto"}) {
    const std::string spec = std::string("ds-sync:pattern=bottleneck,delay=") + delay;
    for (const char* slow : {",slow=1*5", ",slow=1*5,slow=2*5", ",slow=4*3,slow=0*9,slow=1*9"}) {
      const Verification result = check(spec, racks("2x5", slow));
      EXPECT_LT(*result.mixing_rate, 1) << slow << " delay " << delay;
      EXPECT_EQ(result.mean_preserved, true);
    }
  }
}

TEST(Verify, RoundsAgreeWhenTheyEnd) {
  EXPECT_EQ(check("local-sgd:tau=5", flat(6)).steps_to_consensus, 5);
  EXPECT_EQ(check("dasgd:tau=4,delay=3", flat(6)).steps_to_consensus, 7);
  EXPECT_NEAR(*check("dasgd:merge=mix,tau=4,xi=0.25", flat(6)).mixing_rate, std::pow(0.25, 0.25),
              1e-9);
  EXPECT_EQ(check("diloco", flat(6)).steps_to_consensus, 20);
  EXPECT_EQ(check("diloco", flat(6)).mean_preserved, std::nullopt);
  EXPECT_EQ(check("slowmo:tau=7", flat(6)).steps_to_consensus, 7);
  EXPECT_EQ(check("diloco:tau=8,fragments=4", flat(6)).steps_to_consensus, 8);
}

TEST(Verify, LateOuterStepsLeaveTheLocalShare) {
  for (const char* spec : {"diloco:tau=5,overlap=3,xi=0.3", "diloco:tau=5,overlap=4,xi=0.3",
                           "diloco:tau=5,fragments=2,overlap=2,xi=0.3"}) {
    const Verification result = check(spec, flat(6));
    EXPECT_NEAR(*result.mixing_rate, std::pow(0.3, 0.2), 1e-9) << spec;
    EXPECT_EQ(result.steps_to_consensus, std::nullopt) << spec;
  }
}

// Pairs of which every worker keeps its own slow weights: the rate by other means, y and momentum
// of every worker by the paper's rule at zero gradient, over many rounds.
TEST(Verify, PairsWithMomentumComeTogether) {
  constexpr int kWorkers = 16;
  const World world = flat(kWorkers);
  const Verification result = check("noloco:tau=1", world);
  EXPECT_EQ(result.period, std::nullopt);
  EXPECT_EQ(result.mean_preserved, std::nullopt);
  Random random(3);
  std::vector<double> y(kWorkers);
  std::vector<double> m(kWorkers);
  for (double& value : y) value = random.normal();
  const auto apart = [&] {
    const double mean = std::accumulate(y.begin(), y.end(), 0.0) / kWorkers;
    double sum = 0;
    for (const double value : y) sum += (value - mean) * (value - mean);
    return std::sqrt(sum);
  };
  constexpr int kRounds = 100;
  const double before = apart();
  for (Step step = 0; step < kRounds; ++step)
    for (const Exchange& pair : program("noloco:tau=1", step, world).exchanges) {
      const Rank a = pair.group.ranks()[0];
      const Rank b = pair.group.ranks()[1];
      const double middle = (y[a] + y[b]) / 2;
      for (const Rank i : {a, b}) m[i] = 0.5 * m[i] + 0.7 * (middle - y[i]);
      for (const Rank i : {a, b}) y[i] += m[i];
    }
  // The verifier looks at other starts, and a few rounds more.
  EXPECT_NEAR(*result.mixing_rate, std::pow(apart() / before, 1.0 / kRounds), 0.05);
  EXPECT_LT(*result.mixing_rate, 0.95);
}

TEST(Verify, ExactStrategiesAgreeAtOnce) {
  const StrategyTable table = StrategyTable::builtin();
  for (const StrategyInfo& info : table.all()) {
    if (!info.exact) continue;
    const Verification result = check(info.name, racks("3x3"));
    EXPECT_EQ(result.mixing_rate, 0) << info.name;
    EXPECT_EQ(result.steps_to_consensus, 1) << info.name;
    EXPECT_EQ(result.mean_preserved, true) << info.name;
  }
}

// The rate by other means: dense matrices of plain group means, multiplied, and the growth of a
// vector under many periods.
double dense_rate(const std::string& spec, const World& world) {
  const NamedStrategy strategy = make(spec);
  const BucketPlan plan = buckets(strategy, world, example_trace());
  const int period = strategy->traits(world).period;
  const auto n = static_cast<std::size_t>(world.size());
  Random random(1);
  std::vector<double> x(n);
  for (double& value : x) value = random.normal();
  double logarithm = 0;
  constexpr int kPeriods = 4000;
  for (int t = 0; t < kPeriods * period; ++t) {
    for (const Exchange& exchange : strategy->program(t % period, world, plan).exchanges) {
      if (exchange.bucket != 0) continue;
      double mean = 0;
      for (const Rank rank : exchange.group) mean += x[world.ranks().index_of(rank)];
      mean /= exchange.group.size();
      for (const Rank rank : exchange.group) x[world.ranks().index_of(rank)] = mean;
    }
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(n);
    double norm = 0;
    for (double& value : x) {
      value -= mean;
      norm += value * value;
    }
    norm = std::sqrt(norm);
    for (double& value : x) value /= norm;
    if (t >= kPeriods * period / 2) logarithm += std::log(norm);
  }
  return std::exp(logarithm / (kPeriods * period - kPeriods * period / 2));
}

TEST(Verify, RatesAgreeWithPlainPowerIteration) {
  for (const char* spec :
       {"sesgd", "sesgd:group=3", "ds-sync", "ds-sync:pattern=bottleneck,delay=0"})
    for (const int n : {5, 7, 11, 13, 23, 31}) {
      const World world(example_racks(n));
      EXPECT_NEAR(*check(spec, world).mixing_rate, dense_rate(spec, world), 1e-3)
          << spec << " of " << n;
    }
}

TEST(Verify, ReportIsTheContract) {
  const std::string json = to_json(check("sesgd", flat(4)));
  EXPECT_EQ(
      json,
      "{\n \"strategy\": \"sesgd\",\n \"workers\": 4,\n \"ok\": true,\n \"partition\": true,\n"
      " \"deadlock_free\": true,\n \"mean_preserved\": true,\n \"period\": 2,\n"
      " \"mixing_rate\": 0.0,\n \"steps_to_consensus\": 2,\n \"problems\": []\n}\n");
}

TEST(Verify, ExampleRacksAreOfTheDefaultGroup) {
  EXPECT_EQ(print(World(example_racks(16)).racks()),
            "{0 1 2 3} {4 5 6 7} {8 9 10 11} {12 13 14 15}");
  EXPECT_EQ(print(World(example_racks(7)).racks()), "{0 1 2 3} {4 5 6}");
  EXPECT_EQ(World(example_racks(3)).racks().size(), 1U);
  EXPECT_THROW(example_racks(0), UsageError);
}

TEST(Verify, SaysWhatRoundingCostsAndThatTheMeanStays) {
  for (const char* spec :
       {"wfbp:wire=int8", "dear:wire=bf16", "sesgd:wire=int8", "gossip:wire=bf16",
        "ds-sync:pattern=bottleneck,wire=int8", "dasgd:wire=f16", "slowmo:tau=2,wire=int8",
        "noloco:tau=2,wire=int8", "diloco:tau=4,fragments=2,overlap=1,wire=int8"}) {
    const Verification proof = check(spec, racks("2x2"));
    ASSERT_TRUE(proof.rounding.has_value()) << spec;
    EXPECT_EQ(proof.rounding->steps, 10000) << spec;
    EXPECT_LT(proof.rounding->drift, 1e-4) << spec;
  }
  // The control: what is dropped is missed.
  const Verification dropped = check("sesgd:wire=int8,feedback=false", racks("2x2"));
  EXPECT_GT(dropped.rounding->drift, 1e-3);
  EXPECT_EQ(dropped.mean_preserved, false);
  EXPECT_FALSE(check("sesgd", racks("2x2")).rounding.has_value());
}

}  // namespace
}  // namespace riffle::test
