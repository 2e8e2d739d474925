#include "riffle/converge.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "codec/low_rank.h"
#include "refusal.h"
#include "strategies/example.h"

namespace riffle {
namespace {

Convergence run(const std::string& spec, int workers, const ProblemOptions& problem,
                const ConvergeOptions& options) {
  const World world(example_racks(workers));
  const auto made = make_problem(problem, workers);
  return converge(*made, world, made->trace(), StrategyTable::builtin().make(spec), options);
}

const ProblemOptions kNetwork{.data = "synthetic", .layers = "24-12-4", .batch = 4, .seed = 5};

// bsp is one worker with all batches: its loop, written out.
TEST(Converge, BspIsLargeBatchSgd) {
  constexpr int kWorkers = 6;
  constexpr Step kSteps = 60;
  const ConvergeOptions options{.steps = kSteps, .learning_rate = 0.05, .every = 1};
  const Convergence found = run("bsp", kWorkers, kNetwork, options);
  const auto problem = make_problem(kNetwork, kWorkers);
  std::vector<double> x = problem->start();
  std::vector<double> v(x.size());
  for (Step step = 0; step < kSteps; ++step) {
    std::vector<double> sum(x.size());
    std::vector<double> gradient(x.size());
    double loss = 0;
    for (int i = 0; i < kWorkers; ++i) {
      loss += problem->gradient(i, step, x.data(), gradient.data()) / kWorkers;
      for (std::size_t k = 0; k < x.size(); ++k) sum[k] += gradient[k];
    }
    EXPECT_NEAR(found.loss[step], loss, 1e-12) << step;
    EXPECT_LT(found.consensus_distance[step], 1e-15);
    for (std::size_t k = 0; k < x.size(); ++k) {
      v[k] = options.momentum * v[k] + sum[k] / kWorkers;
      x[k] -= options.learning_rate * v[k];
    }
  }
  EXPECT_EQ(found.accuracy, problem->evaluate(x.data(), LearningProblem::Thorough::no).accuracy);
}

// The factors of both layers' gradients by hand, by plain power iteration of rank 1.
TEST(Converge, PowerSgdIsItsRuleWrittenOut) {
  constexpr int kWorkers = 4;
  constexpr Step kSteps = 40;
  const ConvergeOptions options{.steps = kSteps, .learning_rate = 0.05, .momentum = 0, .every = 1};
  const Convergence found = run("powersgd:rank=1,start=3", kWorkers, kNetwork, options);
  const Convergence whole = run("powersgd:rank=4,start=3", kWorkers, kNetwork, options);
  const Convergence bsp = run("bsp", kWorkers, kNetwork, options);
  struct Layer {
    std::size_t begin, rows, columns;
    std::vector<double> q;
    [[nodiscard]] std::size_t size() const { return rows * columns; }
  };
  std::vector<Layer> layers{{0, 24, 12, std::vector<double>(12)},
                            {24 * 12 + 12, 12, 4, std::vector<double>(4)}};
  for (std::size_t i = 0; i < layers.size(); ++i)
    codec::draw_right<double>(
        {.columns = layers[i].columns, .right = layers[i].q.data(), .rank = 1}, i);
  const auto problem = make_problem(kNetwork, kWorkers);
  std::vector<double> x = problem->start();
  std::vector lost(kWorkers, std::vector<double>(x.size()));
  const auto unit = [](std::vector<double>& v) {
    double size = 0;
    for (const double each : v) size += each * each;
    for (double& each : v) each /= std::sqrt(size);
  };
  for (Step step = 0; step < kSteps; ++step) {
    double loss = 0;
    std::vector<double> mean(x.size());
    std::vector sent(kWorkers, std::vector<double>(x.size()));
    for (int i = 0; i < kWorkers; ++i) {
      loss += problem->gradient(i, step, x.data(), sent[i].data()) / kWorkers;
      for (std::size_t k = 0; k < x.size(); ++k) mean[k] += (sent[i][k] += lost[i][k]) / kWorkers;
    }
    EXPECT_NEAR(found.loss[step], loss, 1e-9) << step;
    EXPECT_LT(found.consensus_distance[step], 1e-15);
    EXPECT_NEAR(whole.loss[step], bsp.loss[step], 1e-12) << step;
    for (Layer& layer : layers) {
      if (step < 3) break;
      double* m = mean.data() + layer.begin;
      unit(layer.q);
      std::vector<double> p(layer.rows);
      for (std::size_t k = 0; k < layer.size(); ++k)
        p[k / layer.columns] += m[k] * layer.q[k % layer.columns];
      unit(p);
      layer.q.assign(layer.columns, 0);
      for (std::size_t k = 0; k < layer.size(); ++k)
        layer.q[k % layer.columns] += m[k] * p[k / layer.columns];
      for (std::size_t k = 0; k < layer.size(); ++k) {
        m[k] = p[k / layer.columns] * layer.q[k % layer.columns];
        for (int i = 0; i < kWorkers; ++i)
          lost[i][layer.begin + k] = sent[i][layer.begin + k] - m[k];
      }
    }
    for (std::size_t k = 0; k < x.size(); ++k) x[k] -= options.learning_rate * mean[k];
  }
  EXPECT_GT(std::fabs(found.loss[20] - bsp.loss[20]), 1e-6);
}

TEST(Converge, FactorsOfAnotherModelAreRefused) {
  const auto problem = make_problem(kNetwork, 4);
  const auto table = StrategyTable::builtin();
  EXPECT_THAT(refusal([&] {
                (void)converge(*problem, World(example_racks(4)), example_trace(),
                               table.make("powersgd"), {.steps = 3});
              }),
              testing::HasSubstr("leave --trace out"));
}

TEST(Converge, ExactStrategiesGiveOneCurve) {
  const ConvergeOptions options{.steps = 30, .every = 1};
  const Convergence bsp = run("bsp", 8, kNetwork, options);
  const StrategyTable table = StrategyTable::builtin();
  for (const StrategyInfo& info : table.all()) {
    if (!info.exact) continue;
    const Convergence found = run(info.name, 8, kNetwork, options);
    for (std::size_t i = 0; i < bsp.loss.size(); ++i)
      EXPECT_NEAR(found.loss[i], bsp.loss[i], 1e-12) << info.name;
  }
}

// The weight that is left after a round, of a quadratic whose curvatures are all one.
double round_factor(const std::string& spec, int tau, double rate) {
  const ProblemOptions problem{.problem = "quadratic", .layers = "1", .noise = 0, .condition = 1};
  const auto left = [&](Step steps) {
    return std::sqrt(run(spec, 4, problem,
                         {.steps = steps,
                          .learning_rate = rate,
                          .momentum = 0,
                          .every = steps,
                          .thorough = true})
                         .gradient_norm_squared.back());
  };
  // From the end of one round's delay to that of the next.
  return left(7 * tau) / left(6 * tau);
}

TEST(Converge, DasgdHasTheEffectiveStepsOfItsAlgebra) {
  for (const auto& [tau, delay] : {std::pair{4, 1}, {4, 4}, {6, 2}, {1, 1}})
    for (const double xi : {0.0, 0.25, 0.5}) {
      const auto spec = [&](const std::string& merge) {
        return fmt::format("dasgd:tau={},delay={},{}", tau, delay, merge);
      };
      const std::string mixes = spec(fmt::format("merge=mix,xi={}", xi));
      const double rate = 0.1;
      const double keeps = std::pow(1 - rate, delay);
      EXPECT_NEAR(round_factor(mixes, tau, rate),
                  std::pow(1 - rate, tau - delay) * (1 - xi + xi * keeps), 1e-12)
          << mixes;
      EXPECT_NEAR(round_factor(spec("merge=correct"), tau, rate), std::pow(1 - rate, tau), 1e-12);
      const double tiny = 1e-5;
      EXPECT_NEAR(std::log(round_factor(mixes, tau, tiny)) / std::log(1 - tiny),
                  tau - (1 - xi) * delay, 1e-3)
          << mixes;
    }
}

TEST(Converge, WithoutCommunicationWorkersDriftApart) {
  const ConvergeOptions options{.steps = 200};
  const double together = run("sesgd", 16, kNetwork, options).consensus_distance.back();
  const double alone =
      run("local-sgd:tau=1000000", 16, kNetwork, options).consensus_distance.back();
  EXPECT_GT(alone, 5 * together);
}

TEST(Converge, UnevenDataDriveWorkersApart) {
  const ConvergeOptions options{.steps = 100, .learning_rate = 0.02};
  ProblemOptions uneven = kNetwork;
  uneven.split = "dirichlet:0.01";  // hardly more than one class each
  EXPECT_GT(run("local-sgd:tau=7", 16, uneven, options).consensus_distance.back(),
            1.3 * run("local-sgd:tau=7", 16, kNetwork, options).consensus_distance.back());
}

TEST(Converge, OptimizersLearn) {
  for (const std::string name : {"sgd", "adam", "adamw"}) {
    const Convergence found =
        run("bsp", 4, kNetwork,
            {.steps = 200, .optimizer = name, .learning_rate = name == "sgd" ? 0.05 : 0.005});
    EXPECT_LT(found.loss.back(), 0.6 * found.loss.front()) << name;
    EXPECT_GT(*found.accuracy, 0.6) << name;
  }
  EXPECT_THAT(refusal([] { run("bsp", 4, kNetwork, {.optimizer = "sdg"}); }),
              testing::HasSubstr("sgd"));
}

TEST(Converge, SameSeedSameCurve) {
  const ConvergeOptions options{.steps = 20};
  const std::vector<Convergence> a{run("sesgd:schedule=random", 8, kNetwork, options)};
  const std::vector<Convergence> b{run("sesgd:schedule=random", 8, kNetwork, options)};
  EXPECT_EQ(to_json(a), to_json(b));
}

TEST(Converge, SaysWhenItDiverges) {
  const ProblemOptions problem{.problem = "quadratic", .layers = "4", .condition = 1};
  const Convergence found =
      run("bsp", 4, problem, {.steps = 4000, .learning_rate = 5, .momentum = 0});
  EXPECT_TRUE(found.diverged);
  EXPECT_EQ(found.loss.size(), found.steps.size());
  const Json json = Json::parse(to_json({found}));
  EXPECT_EQ(json["results"][0]["diverged"], true);
}

TEST(Converge, JsonHasTheFieldsOfTheContract) {
  const Json json = Json::parse(to_json({run("bsp", 4, kNetwork, {.steps = 4})}));
  const Json& entry = json.at("results").at(0);
  EXPECT_EQ(entry.at("strategy"), "bsp");
  EXPECT_EQ(entry.at("steps"), Json({1, 2, 3, 4}));
  EXPECT_EQ(entry.at("loss").size(), 4U);
  EXPECT_EQ(entry.at("consensus_distance").size(), 4U);
  EXPECT_TRUE(entry.at("accuracy").is_number());
}

}  // namespace
}  // namespace riffle
