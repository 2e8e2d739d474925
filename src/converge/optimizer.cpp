// As torch.optim has them: SGD with momentum, Adam and AdamW.
#include "converge/optimizer.h"

#include <cmath>
#include <map>

#include "base/text.h"
#include "converge/kernels.h"
#include "riffle/error.h"

namespace riffle::convergence {
namespace {

class Sgd : public Optimizer {
 public:
  Sgd(const ConvergeOptions& options, std::size_t workers, std::size_t weights)
      : rates_{options.learning_rate, options.momentum, options.weight_decay},
        velocity_(workers, weights) {}

  void update(std::size_t i, Columns bucket, const Matrix& gradients, Matrix& weights) override {
    kernels().sgd(weights.row(i) + bucket.begin, velocity_.row(i) + bucket.begin,
                  gradients.row(i) + bucket.begin, bucket.size(), rates_);
  }
  std::vector<Matrix*> state() override { return {&velocity_}; }

 private:
  SgdRates rates_;
  Matrix velocity_;
};

// AdamW takes the decay off the weights, Adam adds it to the gradient.
class Adam : public Optimizer {
 public:
  Adam(const ConvergeOptions& options, bool decoupled, std::size_t workers, std::size_t weights)
      : rate_(options.learning_rate),
        decay_(options.weight_decay),
        decoupled_(decoupled),
        first_(workers, weights),
        second_(workers, weights) {}

  void update(std::size_t i, Columns bucket, const Matrix& gradients, Matrix& weights) override {
    constexpr double kFirst = 0.9;
    constexpr double kSecond = 0.999;
    constexpr double kTiny = 1e-8;
    const double step = ++steps_[{i, bucket.begin}];
    const double rate = rate_ / (1 - std::pow(kFirst, step));
    const double scale = 1 / (1 - std::pow(kSecond, step));
    double* x = weights.row(i);
    double* m = first_.row(i);
    double* v = second_.row(i);
    const double* g = gradients.row(i);
    for (std::size_t k = bucket.begin; k < bucket.end; ++k) {
      const double slope = decoupled_ ? g[k] : g[k] + decay_ * x[k];
      if (decoupled_) x[k] -= rate_ * decay_ * x[k];
      m[k] = kFirst * m[k] + (1 - kFirst) * slope;
      v[k] = kSecond * v[k] + (1 - kSecond) * slope * slope;
      x[k] -= rate * m[k] / (std::sqrt(v[k] * scale) + kTiny);
    }
  }
  std::vector<Matrix*> state() override { return {&first_, &second_}; }

 private:
  double rate_;
  double decay_;
  bool decoupled_;
  Matrix first_;
  Matrix second_;
  std::map<std::pair<std::size_t, std::size_t>, int> steps_;  // by worker and first column
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const ConvergeOptions& options, std::size_t workers,
                                          std::size_t weights) {
  const std::vector<std::string> known{"sgd", "adam", "adamw"};
  if (options.optimizer == "sgd") return std::make_unique<Sgd>(options, workers, weights);
  if (options.optimizer == "adam" || options.optimizer == "adamw")
    return std::make_unique<Adam>(options, options.optimizer == "adamw", workers, weights);
  throw UsageError(unknown_name("optimizer", options.optimizer, known));
}

}  // namespace riffle::convergence
