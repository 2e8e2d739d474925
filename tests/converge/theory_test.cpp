// What theory says of a strategy, against closed forms and against the simulation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "riffle/converge.h"
#include "strategies/example.h"

namespace riffle {
namespace {

Theory of(const std::string& spec, int workers, double momentum) {
  const World world(example_racks(workers));
  return theory_of(StrategyTable::builtin().make(spec), world, example_trace(), momentum);
}

TEST(Theory, SynchronousSgdNeverDriftsApart) {
  for (const std::string spec : {"bsp", "mg-wfbp", "dear"}) {
    const Theory found = of(spec, 8, 0.9);
    EXPECT_LT(found.noise_gain, 1e-12) << spec;
    EXPECT_LT(found.drift_gain, 1e-12) << spec;
    EXPECT_NEAR(found.rate_bound.value(), 3.8, 0.05) << spec;
  }
}

// Digits leave N/g^s - 1 of N units of an impulse s steps old, until none is left.
TEST(Theory, DigitsHaveTheirClosedForm) {
  for (const auto& [n, group, digits] : {std::tuple{16, 4, 2}, {16, 2, 4}, {64, 4, 3}}) {
    double left = 0;
    for (int s = 1; s < digits; ++s) left += (n / std::pow(group, s) - 1) / n;
    EXPECT_NEAR(of(fmt::format("sesgd:group={}", group), n, 0).noise_gain, std::sqrt(left),
                0.08 * std::sqrt(left))
        << n << "/" << group;
  }
}

// j steps after an average, j impulses of (N-1)/N are there.
TEST(Theory, LocalSgdHasItsClosedForm) {
  for (const int tau : {2, 4, 8}) {
    const double noise = std::sqrt(15.0 / 16 * (tau - 1) / 2);
    double drift = 0;
    for (int j = 0; j < tau; ++j) drift += 15.0 / 16 * j * j / tau;
    const Theory found = of(fmt::format("local-sgd:tau={}", tau), 16, 0);
    EXPECT_NEAR(found.noise_gain, noise, 0.05 * noise) << tau;
    EXPECT_NEAR(found.drift_gain, std::sqrt(drift), 0.1 * std::sqrt(drift)) << tau;
    EXPECT_NEAR(found.rate_bound.value(), 2, 0.05) << tau;
  }
}

// A period of a million steps must not be rehearsed whole: it took hours and all memory.
TEST(Theory, WhoHardlyEverMeetsIsAsGoodAsAlone) {
  const Theory found = of("local-sgd:tau=1000000", 4, 0.9);
  EXPECT_GT(found.noise_gain, 20 * of("local-sgd:tau=8", 4, 0.9).noise_gain);
  EXPECT_TRUE(std::isfinite(found.drift_gain));
  EXPECT_NEAR(found.rate_bound.value(), 3.8, 0.05);
}

// Where groups average; gossip's matrices are not symmetric, and it keeps a little more.
TEST(Theory, CombineThenAdaptHalvesTheRange) {
  for (const std::string spec : {"sesgd", "ds-sync"})
    EXPECT_NEAR(of(spec + ":order=combine-then-adapt", 16, 0).rate_bound.value() /
                    of(spec, 16, 0).rate_bound.value(),
                0.5, 0.05)
        << spec;
}

// The curvature is weak beside the mixing, as theory takes it.
TEST(Theory, PredictsTheConsensusDistanceOfTheQuadratic) {
  for (const double momentum : {0.0, 0.9})
    for (const std::string spec :
         {"sesgd", "sesgd:group=2", "sesgd:schedule=random", "sesgd:order=combine-then-adapt",
          "gossip", "ds-sync:pattern=bottleneck,delay=0", "ds-sync:pattern=bottleneck,delay=2",
          "local-sgd:tau=4", "dasgd:tau=4,delay=1", "dasgd:tau=4,delay=4",
          "dasgd:tau=4,delay=2,merge=mix"}) {
      const World world(example_racks(16));
      const auto problem =
          make_problem({.problem = "quadratic", .layers = "400", .noise = 0.5, .condition = 1}, 16);
      const double rate = 0.004;
      const Convergence found =
          converge(*problem, world, problem->trace(), StrategyTable::builtin().make(spec),
                   {.steps = 1200, .learning_rate = rate, .momentum = momentum, .every = 1});
      double square = 0;  // root mean square, as the gain is
      for (auto at = found.consensus_distance.end() - 480; at != found.consensus_distance.end();
           ++at)
        square += *at * *at / 480;
      const double measured = std::sqrt(square);
      const double predicted = rate * 0.5 * of(spec, 16, momentum).noise_gain;
      EXPECT_NEAR(measured / predicted, 1, 0.1) << spec << " momentum " << momentum;
    }
}

// Just below the bound weights settle, just above it they do not.
TEST(Theory, TheBoundIsWhereTrainingBreaks) {
  for (const std::string spec : {"bsp", "sesgd", "sesgd:order=combine-then-adapt",
                                 "local-sgd:tau=4", "dasgd:tau=4,delay=2", "dasgd:tau=4,delay=4"})
    for (const double momentum : {0.0, 0.9}) {
      const double bound = of(spec, 16, momentum).rate_bound.value();
      const auto last_loss = [&](double rate) {
        const World world(example_racks(16));
        const auto problem = make_problem(
            {.problem = "quadratic", .layers = "8", .noise = 0.001, .condition = 1}, 16);
        const Convergence found =
            converge(*problem, world, problem->trace(), StrategyTable::builtin().make(spec),
                     {.steps = 4000, .learning_rate = rate, .momentum = momentum});
        return found.diverged ? INFINITY : found.loss.back();
      };
      // With momentum what breaks may hold again at a higher rate, so lower ones are asked too.
      for (const double share : {0.3, 0.6, 0.8, 0.93})
        EXPECT_LT(last_loss(share * bound), 0.1) << spec << " " << momentum << " " << share;
      EXPECT_GT(last_loss(1.07 * bound), 10) << spec << " " << momentum;
    }
}

}  // namespace
}  // namespace riffle
