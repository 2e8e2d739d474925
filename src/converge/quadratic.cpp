#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "converge/problems.h"
#include "converge/shards.h"
#include "riffle/error.h"

namespace riffle::convergence {
namespace {

// In each coordinate; not zero, so that distances relative to the weights mean something.
constexpr double kOptimum = 1;

class Quadratic : public LearningProblem {
 public:
  Quadratic(const ProblemOptions& options, std::size_t dimension, int workers)
      : options_(options), curvatures_(dimension) {
    const auto last = static_cast<double>(std::max<std::size_t>(dimension, 2) - 1);
    for (std::size_t k = 0; k < dimension; ++k)
      curvatures_[k] = std::pow(options.condition, -static_cast<double>(k) / last);
    place_centres(workers);
  }

  [[nodiscard]] std::string describe() const override {
    return fmt::format("quadratic of {} coordinates, condition {}, noise {}, {}",
                       curvatures_.size(), options_.condition, options_.noise, options_.split);
  }

  [[nodiscard]] Trace trace() const override {
    Trace trace{.model = "quadratic", .dtype = DType::f64, .layers = {}, .source = "made up"};
    const std::size_t layers = std::min<std::size_t>(4, curvatures_.size());
    for (std::size_t i = 0; i < layers; ++i) {
      const std::size_t size =
          (i + 1) * curvatures_.size() / layers - i * curvatures_.size() / layers;
      trace.layers.push_back({fmt::format("part{}", i), static_cast<std::int64_t>(size),
                              Seconds(1e-3), Seconds(2e-3)});
    }
    return trace;
  }

  // 1 away from the optimum in each coordinate.
  [[nodiscard]] std::vector<double> start() const override {
    return std::vector<double>(curvatures_.size(), kOptimum + 1);
  }

  double gradient(int worker, Step step, const double* x, double* gradient) override {
    Random random(Random(options_.seed, 31).next() + static_cast<std::uint64_t>(worker),
                  static_cast<std::uint64_t>(step));
    double loss = 0;
    for (std::size_t k = 0; k < curvatures_.size(); ++k) {
      const double slope = curvatures_[k] * (x[k] - centre(worker, k));
      loss += slope * (x[k] - centre(worker, k)) / 2;
      gradient[k] = slope + options_.noise * random.normal();
    }
    return loss;
  }

  // The mean of all f_i, less its minimum.
  Evaluation evaluate(const double* x, Thorough /*thorough*/) override {
    Evaluation found;
    for (std::size_t k = 0; k < curvatures_.size(); ++k) {
      const double slope = curvatures_[k] * (x[k] - kOptimum);
      found.loss += slope * (x[k] - kOptimum) / 2;
      found.gradient_norm_squared += slope * slope;
    }
    found.test_loss = found.loss;
    return found;
  }

 private:
  [[nodiscard]] double centre(int worker, std::size_t k) const {
    return kOptimum + (centres_.empty() ? 0 : centres_[worker][k]);
  }

  // Of ten classes, each with a centre of its own, mixed by the worker's shares.
  void place_centres(int workers) {
    const double alpha = parse_split(options_.split);
    if (alpha == 0) return;
    constexpr int kClasses = 10;
    const auto shares = class_shares(workers, kClasses, alpha, options_.seed);
    Random random(options_.seed, 32);
    std::vector<std::vector<double>> of_class(kClasses);
    for (auto& each : of_class)
      for (std::size_t k = 0; k < curvatures_.size(); ++k) each.push_back(random.normal());
    centres_.assign(shares.size(), std::vector<double>(curvatures_.size()));
    for (std::size_t k = 0; k < curvatures_.size(); ++k) {
      double mean = 0;
      for (std::size_t w = 0; w < shares.size(); ++w) {
        for (std::size_t c = 0; c < of_class.size(); ++c)
          centres_[w][k] += shares[w][c] * of_class[c][k];
        mean += centres_[w][k] / static_cast<double>(shares.size());
      }
      for (auto& each : centres_) each[k] -= mean;
    }
  }

  ProblemOptions options_;
  std::vector<double> curvatures_;
  std::vector<std::vector<double>> centres_;  // by worker; empty where all are zero
};

}  // namespace

std::unique_ptr<LearningProblem> make_quadratic(const ProblemOptions& options, int workers) {
  const std::int64_t dimension =
      options.layers.empty() ? 64 : parse_integer(options.layers, "--layers");
  if (dimension < 1 || dimension > 1'000'000)
    usage_error("--layers: {} coordinates must be from 1 to 1000000", dimension);
  if (options.data != "auto") usage_error("--data: the quadratic has none");
  return std::make_unique<Quadratic>(options, static_cast<std::size_t>(dimension), workers);
}

}  // namespace riffle::convergence
