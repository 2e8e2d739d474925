// The convergence simulator: N virtual workers in one process train a small real problem, their
// weights mixed exactly as the programs of a strategy say. It shows what a strategy does to loss,
// accuracy and agreement before anybody runs it. docs/converge.md has the problems and the limits.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "riffle/strategy.h"

namespace riffle {

// What the workers learn.
struct ProblemOptions {
  std::string problem = "network";  // quadratic, logistic or network
  // auto: digits where they are in the user's cache folder and fit the network, else synthetic.
  // Also a folder with MNIST's four idx files.
  std::string data = "auto";
  // Values between layers, "784-64-10". Empty: what fits the data. Of the quadratic: its dimension.
  std::string layers{};
  int batch = 32;             // samples of a worker in a step
  std::string split = "iid";  // or dirichlet:A, the smaller A the more workers' data differ
  double noise = 1;           // of the quadratic's gradients, the deviation of each coordinate
  double condition = 100;     // of the quadratic: largest over smallest curvature; the largest is 1
  std::uint64_t seed = 0;     // of data, split, batches and the first weights
};

// A problem for a number of workers. Used by one thread at a time.
class LearningProblem {
 public:
  virtual ~LearningProblem() = default;

  // "digits, 784-64-10, 60000 samples, iid"
  [[nodiscard]] virtual std::string describe() const = 0;
  // Its layers, for strategies to put into buckets; times are made up.
  [[nodiscard]] virtual Trace trace() const = 0;
  // Batches in an epoch; 0 where there is none.
  [[nodiscard]] virtual Step epoch() const { return 0; }
  // What all workers start from.
  [[nodiscard]] virtual std::vector<double> start() const = 0;

  // The samples of that gradient, as the data number them; none where there are no samples.
  virtual std::span<const int> batch(int /*worker*/, Step /*step*/) { return {}; }
  // The gradient that `worker` sees in `step` at weights `x`; gives the loss of its batch.
  virtual double gradient(int worker, Step step, const double* x, double* gradient) = 0;

  struct Evaluation {
    double loss = 0;                   // of the whole objective
    double gradient_norm_squared = 0;  // of the same
    // On samples never trained on; of the quadratic the loss of the whole objective.
    double test_loss = 0;
    std::optional<double> accuracy{};  // on the same samples, from 0 to 1
  };
  enum class Thorough { no, yes };
  // On samples never trained on alone, unless thorough.
  virtual Evaluation evaluate(const double* x, Thorough thorough) = 0;
};

// UsageError for options that contradict each other or the data.
std::unique_ptr<LearningProblem> make_problem(const ProblemOptions& options, int workers);

struct ConvergeOptions {
  Step steps = 300;
  std::string optimizer = "sgd";  // sgd, adam or adamw
  double learning_rate = 0.1;
  double momentum = 0.9;  // of sgd
  double weight_decay = 0;
  Step every = 0;  // steps between two points of the curves; 0: about 100 points
  // Evaluate the mean of all workers at every point, not only at the end: gradient_norm_squared.
  bool thorough = false;
  // The same on samples never trained on: test_loss and test_accuracy.
  bool test = false;
  // Called now and then with the steps done.
  std::function<void(Step)> progress{};
};

// What follows from the programs alone, for SGD with this momentum.
struct Theory {
  double momentum = 0;
  // How far noise of deviation 1 in every worker's gradient keeps workers apart, root mean square,
  // for a learning rate of 1 (it is in proportion): the consensus distance of the quadratic.
  double noise_gain = 0;
  // The same of gradients that differ by 1 between workers, always in the same way: uneven data.
  double drift_gain = 0;
  // Up to which learning rate a quadratic of curvature 1 goes to zero; of synchronous SGD that is
  // 2(1 + momentum). Above, some rates may be stable again. Absent where nobody asked.
  std::optional<double> rate_bound{};
};

struct Convergence {
  std::string strategy;
  std::string problem;
  int workers = 0;
  // Done at each point of the curves. Where weights are served (asp), of all workers together, over
  // their number: the fast make more.
  std::vector<Step> steps;
  // Of the workers' batches before they learned from them, mean over workers and over the steps
  // since the last point.
  std::vector<double> loss;
  std::vector<double> consensus_distance;       // after the step's mixing
  std::vector<double> gradient_norm_squared{};  // of the objective at the mean; where thorough
  std::vector<double> test_loss{};              // of the mean of all workers; where asked for
  std::vector<double> test_accuracy{};          // the same; empty for the quadratic
  std::optional<double> accuracy{};             // of the exact mean of all workers at the end
  bool diverged = false;                        // a loss was not finite; the curves end there
  // Joined with the timing simulator.
  std::optional<Seconds> seconds_per_step{};
  std::optional<Theory> theory{};
};

// Trains under the strategy's programs for `world`. `trace` is what its buckets are made of: the
// problem's own, or a model's, whose layers then stand for as large a share of the problem's.
Convergence converge(LearningProblem& problem, const World& world, const Trace& trace,
                     const NamedStrategy& strategy, const ConvergeOptions& options);

// What a run begins with and learns from, to repeat it elsewhere: {"start": the first weights,
// "samples": for each step, for each worker, the samples of its batch}.
std::string batches_json(LearningProblem& problem, int workers, Step steps);

enum class Theorize { all, gains };
Theory theory_of(const NamedStrategy& strategy, const World& world, const Trace& trace,
                 double momentum, Theorize what = Theorize::all);

// {"results": [{"strategy": ..., "steps": [...], "loss": [...], ...}]}
std::string to_json(const std::vector<Convergence>& results);

}  // namespace riffle
