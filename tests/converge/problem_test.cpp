#include <gtest/gtest.h>

#include <cmath>

#include "refusal.h"
#include "riffle/converge.h"

namespace riffle {
namespace {

// The gradient against differences of the loss, in some coordinates.
void check_gradient(const ProblemOptions& options) {
  const auto problem = make_problem(options, 3);
  std::vector<double> x = problem->start();
  std::vector<double> gradient(x.size());
  std::vector<double> ignored(x.size());
  problem->gradient(1, 2, x.data(), gradient.data());
  for (std::size_t k = 0; k < x.size(); k += 1 + x.size() / 50) {
    const double before = x[k];
    const auto loss_at = [&](double value) {
      x[k] = value;
      return problem->gradient(1, 2, x.data(), ignored.data());
    };
    const double slope = (loss_at(before + 1e-5) - loss_at(before - 1e-5)) / 2e-5;
    x[k] = before;
    EXPECT_NEAR(gradient[k], slope, 1e-6) << options.problem << " coordinate " << k;
  }
}

TEST(LearningProblem, GradientsAreThoseOfTheLoss) {
  check_gradient({.data = "synthetic", .layers = "9-7-5-3", .batch = 8});
  check_gradient({.problem = "logistic", .data = "synthetic", .layers = "9-3", .batch = 8});
  check_gradient({.problem = "quadratic", .layers = "20", .split = "dirichlet:0.3", .noise = 0});
}

TEST(LearningProblem, WholeObjectiveIsTheMeanOfItsBatches) {
  const ProblemOptions options{.data = "synthetic", .layers = "6-5-4", .batch = 10};
  const auto problem = make_problem(options, 4);
  const std::vector<double> x = problem->start();
  std::vector<double> gradient(x.size());
  std::vector<double> sum(x.size());
  double loss = 0;
  const double share = 1.0 / static_cast<double>(4 * problem->epoch());
  for (Step step = 0; step < problem->epoch(); ++step)
    for (int i = 0; i < 4; ++i) {
      loss += share * problem->gradient(i, step, x.data(), gradient.data());
      for (std::size_t k = 0; k < x.size(); ++k) sum[k] += share * gradient[k];
    }
  double square = 0;
  for (const double value : sum) square += value * value;
  const auto found = problem->evaluate(x.data(), LearningProblem::Thorough::yes);
  EXPECT_NEAR(found.loss, loss, 1e-10);
  EXPECT_NEAR(found.gradient_norm_squared, square, 1e-10);
}

TEST(LearningProblem, QuadraticNoiseHasItsDeviation) {
  const auto problem = make_problem({.problem = "quadratic", .layers = "2000", .noise = 3}, 2);
  const std::vector<double> x(2000);
  std::vector<double> gradient(2000);
  problem->gradient(0, 0, x.data(), gradient.data());
  double square = 0;
  for (const double value : gradient) square += value * value / 2000;
  EXPECT_NEAR(std::sqrt(square), 3, 0.2);
}

TEST(LearningProblem, BadOptionsAreAnsweredWithGoodOnes) {
  const auto says = [](const ProblemOptions& options, int workers = 4) {
    return refusal([&] { make_problem(options, workers); });
  };
  using testing::HasSubstr;
  EXPECT_THAT(says({.problem = "quadratik"}), HasSubstr("quadratic"));
  EXPECT_THAT(says({.data = "synthetic", .layers = "5"}), HasSubstr("--layers"));
  EXPECT_THAT(says({.data = "synthetic", .layers = "5-x-3"}), HasSubstr("--layers"));
  EXPECT_THAT(says({.data = "synthetic", .split = "dirichlet"}), HasSubstr("dirichlet:A"));
  EXPECT_THAT(says({.data = "synthetic", .split = "dirichlet:0"}), HasSubstr("0.001"));
  EXPECT_THAT(says({.data = "/nonexistent"}), HasSubstr("/nonexistent"));
  EXPECT_THAT(says({.problem = "quadratic", .data = "digits"}), HasSubstr("--data"));
}

}  // namespace
}  // namespace riffle
