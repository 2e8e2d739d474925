#include "riffle/converge.h"

#include <algorithm>
#include <cmath>

#include "converge/workers.h"
#include "riffle/error.h"
#include "schedule/schedule.h"

namespace riffle {
namespace {

using convergence::Workers;

void check(const ConvergeOptions& options) {
  if (options.steps < 1) usage_error("--steps: {} must be at least 1", options.steps);
  if (!(options.learning_rate >= 0) || !std::isfinite(options.learning_rate))
    usage_error("--learning-rate: {} must be 0 or more", options.learning_rate);
  if (!(options.momentum >= 0 && options.momentum < 1))
    usage_error("--momentum: {} must be at least 0 and below 1", options.momentum);
  if (!(options.weight_decay >= 0) || !std::isfinite(options.weight_decay))
    usage_error("--weight-decay: {} must be 0 or more", options.weight_decay);
}

// The curves while they grow.
class Recorder {
 public:
  Recorder(LearningProblem& problem, const ConvergeOptions& options, Convergence& into)
      : problem_(problem),
        options_(options),
        into_(into),
        every_(options.every > 0 ? options.every : std::max<Step>(1, options.steps / 100)) {}

  // After step number `done`; false where there is no point in going on.
  bool add(Step done, double loss, const Workers& workers) {
    sum_ += loss;
    ++count_;
    into_.diverged = !std::isfinite(loss);
    if (done % every_ != 0 && done != options_.steps && !into_.diverged) return true;
    if (options_.progress) options_.progress(done);
    const double distance = into_.diverged ? 0 : workers.consensus_distance();
    if (into_.diverged || !std::isfinite(distance)) {
      into_.diverged = true;
      return false;
    }
    into_.steps.push_back(done);
    into_.loss.push_back(sum_ / count_);
    into_.consensus_distance.push_back(distance);
    if (options_.thorough || options_.test) evaluate(workers);
    sum_ = count_ = 0;
    return true;
  }

 private:
  void evaluate(const Workers& workers) {
    using Thorough = LearningProblem::Thorough;
    const std::vector<double> mean = convergence::mean_row(workers.weights());
    const auto found =
        problem_.evaluate(mean.data(), options_.thorough ? Thorough::yes : Thorough::no);
    if (options_.thorough) into_.gradient_norm_squared.push_back(found.gradient_norm_squared);
    if (!options_.test) return;
    into_.test_loss.push_back(found.test_loss);
    if (found.accuracy) into_.test_accuracy.push_back(*found.accuracy);
  }

  LearningProblem& problem_;
  const ConvergeOptions& options_;
  Convergence& into_;
  Step every_;
  double sum_ = 0;
  double count_ = 0;
};

// The programs of a strategy; those of a period are kept, as far as there are steps to take.
class Programs {
 public:
  Programs(const Strategy& strategy, const World& world, const BucketPlan& buckets, Step steps)
      : strategy_(strategy),
        world_(world),
        buckets_(buckets),
        traits_(strategy.traits_with(world, buckets)),
        kept_(schedule::programs_of(strategy, world, buckets, steps)) {}

  [[nodiscard]] schedule::Needs needs() const { return schedule::needs_of(kept_); }
  const Program& at(Step step) {
    if (traits_.period > 0 && step >= traits_.warm_up)
      return kept_[static_cast<std::size_t>(step - traits_.warm_up) % kept_.size()];
    return drawn_ = schedule::program_of(strategy_, step, world_, buckets_);
  }

 private:
  const Strategy& strategy_;
  const World& world_;
  const BucketPlan& buckets_;
  Traits traits_;
  std::vector<Program> kept_;
  Program drawn_;
};

std::vector<double> slow_of(const World& world) {
  std::vector<double> slow;
  for (const Rank rank : world.ranks()) slow.push_back(world.cluster.workers[rank].slow);
  return slow;
}

}  // namespace

Convergence converge(LearningProblem& problem, const World& world, const Trace& trace,
                     const NamedStrategy& strategy, const ConvergeOptions& options) {
  check(options);
  const CostModel cost(world.cluster);
  const BucketPlan buckets = strategy->buckets(trace, cost, world);
  Programs programs(*strategy.strategy, world, buckets, options.steps);
  const schedule::Needs needs = programs.needs();
  const std::vector<double> start = problem.start();
  Workers workers(world.size(), start, convergence::columns_of(buckets, trace, start.size()),
                  needs.outer, options, slow_of(world));
  if (needs.rank > 0) {
    if (trace.layers != problem.trace().layers)
      usage_error(
          "{}: the factors of {} are of its own matrices, not of the problem's; leave --trace out",
          strategy.spec, trace.model);
    workers.set_factors(convergence::placed_matrices(trace, needs.rank));
  }
  Convergence result{.strategy = strategy.spec,
                     .problem = problem.describe(),
                     .workers = world.size(),
                     .steps = {},
                     .loss = {},
                     .consensus_distance = {}};
  Recorder recorder(problem, options, result);
  const convergence::Learn learn = [&](int i, Step step, const double* x, double* gradient) {
    return problem.gradient(i, step, x, gradient);
  };
  for (Step step = 0; step < options.steps; ++step)
    if (const double loss = workers.step(programs.at(step), learn);
        !recorder.add(step + 1, loss, workers))
      break;
  workers.finish();
  const std::vector<double> mean = convergence::mean_row(workers.weights());
  if (!result.diverged)
    result.accuracy = problem.evaluate(mean.data(), LearningProblem::Thorough::no).accuracy;
  return result;
}

}  // namespace riffle
