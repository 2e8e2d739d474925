// Linear response: without curvature, what workers hold is a linear function of the noise in their
// gradients, so how far apart noise drives them is in proportion to it, whatever is learned.
#include <algorithm>
#include <cmath>

#include "converge/workers.h"
#include "riffle/random.h"
#include "schedule/schedule.h"

namespace riffle {
namespace {

using convergence::Columns;
using convergence::Learn;
using convergence::Matrix;
using convergence::Workers;

// Of a longer period only so many steps are rehearsed, over and over: who meets that rarely is as
// good as alone.
constexpr Step kLongestPeriod = 512;
constexpr Step kDraws = 8;  // that stand for a schedule without a period

// A strategy's programs on one bucket of some columns.
class Rehearsal {
 public:
  Rehearsal(const NamedStrategy& strategy, const World& world, const Trace& trace)
      : strategy_(*strategy.strategy),
        world_(world),
        buckets_(strategy->buckets(trace, CostModel(world.cluster), world)) {
    const Traits traits = strategy_.traits_with(world, buckets_);
    periodic_ = traits.period > 0;
    const Step steps = periodic_ ? traits.period : std::max<Step>(kDraws, traits.round);
    for (Step step = 0; step < std::min(steps, kLongestPeriod); ++step)
      programs_.push_back(made(traits.warm_up + step));
  }

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(world_.size()); }
  [[nodiscard]] Step period() const { return static_cast<Step>(programs_.size()); }

  // Until the next call.
  [[nodiscard]] const Program& program(Step step) {
    if (periodic_) return programs_[static_cast<std::size_t>(step) % programs_.size()];
    return random_ = made(step);
  }

  [[nodiscard]] Workers workers(std::size_t columns, double rate, double momentum) const {
    return {world_.size(),
            std::vector<double>(columns),
            {Columns{0, columns}},
            schedule::needs_of(programs_).outer,
            {.learning_rate = rate, .momentum = momentum}};
  }

 private:
  // Every bucket has the same columns' worth of exchanges, so the first stands for all.
  [[nodiscard]] Program made(Step step) const {
    Program first;
    for (const Exchange& exchange :
         schedule::program_of(strategy_, step, world_, buckets_).exchanges)
      if (exchange.bucket == 0) first.add(exchange);
    return first;
  }

  const Strategy& strategy_;
  const World& world_;
  BucketPlan buckets_;
  bool periodic_ = false;
  std::vector<Program> programs_{};
  Program random_{};
};

// Mean square distance from the mean, summed over columns.
double apart(const Matrix& weights) {
  const std::vector<double> mean = convergence::mean_row(weights);
  double sum = 0;
  for (std::size_t i = 0; i < weights.rows(); ++i)
    for (std::size_t k = 0; k < mean.size(); ++k)
      sum += (weights.row(i)[k] - mean[k]) * (weights.row(i)[k] - mean[k]);
  return sum / static_cast<double>(weights.rows());
}

double sign(std::uint64_t seed, int worker, std::size_t column) {
  return Random(seed + static_cast<std::uint64_t>(worker), column).next() % 2 == 0 ? 1 : -1;
}

// The mean over the last period of the square of what `learn` has driven apart.
double settled(Rehearsal& rehearsal, Workers& workers, Step steps, const Learn& learn) {
  const Step last = std::max<Step>(rehearsal.period(), 8);
  double sum = 0;
  for (Step step = 0; step < steps; ++step) {
    workers.step(rehearsal.program(step), learn);
    if (step >= steps - last) sum += apart(workers.weights());
  }
  return sum / static_cast<double>(last);
}

// Noise in every step. As many columns as make some 16000 values of all workers, so that
// what is left to chance is half a hundredth.
double noise_gain(Rehearsal& rehearsal, double momentum) {
  const Step steps =
      std::max<Step>(64, 3 * rehearsal.period()) + static_cast<Step>(std::ceil(3 / (1 - momentum)));
  const std::size_t columns = std::max<std::size_t>(16, 16384 / rehearsal.size());
  const Learn noise = [&](int worker, Step step, const double* /*x*/, double* gradient) {
    Random random(101 + static_cast<std::uint64_t>(worker), static_cast<std::uint64_t>(step));
    std::uint64_t signs = 0;
    for (std::size_t k = 0; k < columns; ++k, signs >>= 1U) {
      if (k % 64 == 0) signs = random.next();
      gradient[k] = signs % 2 == 0 ? 1 : -1;
    }
    return 0.0;
  };
  Workers workers = rehearsal.workers(columns, 1, momentum);
  return std::sqrt(settled(rehearsal, workers, steps, noise) / static_cast<double>(columns));
}

double drift_gain(Rehearsal& rehearsal, double momentum) {
  const Step steps =
      std::max<Step>(64, 3 * rehearsal.period()) + static_cast<Step>(std::ceil(8 / (1 - momentum)));
  constexpr std::size_t kColumns = 16;
  const Learn constant = [&](int worker, Step /*step*/, const double* /*x*/, double* gradient) {
    for (std::size_t k = 0; k < kColumns; ++k) gradient[k] = sign(202, worker, k);
    return 0.0;
  };
  Workers workers = rehearsal.workers(kColumns, 1, momentum);
  return std::sqrt(settled(rehearsal, workers, steps, constant) / kColumns);
}

// Whether weights go to zero on a quadratic of curvature one.
bool is_stable(Rehearsal& rehearsal, double rate, double momentum) {
  constexpr std::size_t kColumns = 2;
  const Step period = rehearsal.period();
  const Step steps = std::max({Step{200}, std::min(8 * period, Step{512}), 3 * period});
  Workers workers = rehearsal.workers(kColumns, rate, momentum);
  // Noise in the first steps drives workers apart, as far as their gradients are their own.
  const Learn slope = [&](int worker, Step step, const double* x, double* gradient) {
    for (std::size_t k = 0; k < kColumns; ++k)
      gradient[k] =
          x[k] + (step < 8 ? 0.5 + sign(303 + static_cast<std::uint64_t>(step), worker, k) : 0);
    return 0.0;
  };
  const auto size = [&] {
    double sum = 0;
    for (std::size_t i = 0; i < workers.weights().rows(); ++i)
      for (std::size_t k = 0; k < kColumns; ++k) sum += std::pow(workers.weights().row(i)[k], 2);
    return sum;
  };
  double middle = 0;  // the mean over a period hides how weights swing within it
  double end = 0;
  const Step span = std::max<Step>(period, 20);
  for (Step step = 0; step < steps; ++step) {
    workers.step(rehearsal.program(step), slope);
    if (step >= steps / 2 - span && step < steps / 2) middle += size();
    if (step >= steps - span) end += size();
  }
  return end < middle || end < 1e-60;
}

double rate_bound(Rehearsal& rehearsal, double momentum) {
  double low = 0;
  double high = 2.5 * (1 + momentum);
  for (int i = 0; i < 9; ++i) {
    const double rate = (low + high) / 2;
    (is_stable(rehearsal, rate, momentum) ? low : high) = rate;
  }
  return low;
}

}  // namespace

Theory theory_of(const NamedStrategy& strategy, const World& world, const Trace& trace,
                 double momentum) {
  Rehearsal rehearsal(strategy, world, trace);
  return {.momentum = momentum,
          .noise_gain = noise_gain(rehearsal, momentum),
          .drift_gain = drift_gain(rehearsal, momentum),
          .rate_bound = rate_bound(rehearsal, momentum)};
}

}  // namespace riffle
