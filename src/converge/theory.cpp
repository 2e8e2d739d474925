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

// Until what is driven apart has settled, as far as a rehearsal can wait: momentum forgets within
// `memories` times 1 / (1 - momentum) steps.
Step settling(Step period, double memories, double momentum) {
  constexpr double kMost = 4096;
  const Step rounds = std::max({Step{64}, std::min(8 * period, Step{512}), 3 * period});
  return rounds + static_cast<Step>(std::min(std::ceil(memories / (1 - momentum)), kMost));
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
  const Step steps = settling(rehearsal.period(), 3, momentum);
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
  const Step steps = settling(rehearsal.period(), 8, momentum);
  constexpr std::size_t kColumns = 16;
  const Learn constant = [&](int worker, Step /*step*/, const double* /*x*/, double* gradient) {
    for (std::size_t k = 0; k < kColumns; ++k) gradient[k] = sign(202, worker, k);
    return 0.0;
  };
  Workers workers = rehearsal.workers(kColumns, 1, momentum);
  return std::sqrt(settled(rehearsal, workers, steps, constant) / kColumns);
}

// For each rate whether weights go to zero on a quadratic of curvature one; each has columns of its
// own, in which gradients are scaled by it.
std::vector<bool> are_stable(Rehearsal& rehearsal, const std::vector<double>& rates,
                             double momentum) {
  constexpr std::size_t kColumns = 2;
  const Step period = rehearsal.period();
  const Step steps = std::max({Step{400}, std::min(8 * period, Step{512}), 3 * period});
  Workers workers = rehearsal.workers(kColumns * rates.size(), 1, momentum);
  // Noise in the first steps drives workers apart, as far as their gradients are their own.
  const Learn slope = [&](int worker, Step step, const double* x, double* gradient) {
    for (std::size_t k = 0; k < kColumns * rates.size(); ++k) {
      const double noise =
          step < 8 ? 0.5 + sign(303 + static_cast<std::uint64_t>(step), worker, k % kColumns) : 0;
      gradient[k] = rates[k / kColumns] * (x[k] + noise);
    }
    return 0.0;
  };
  const auto add_sizes = [&](std::vector<double>& sizes) {
    for (std::size_t i = 0; i < workers.weights().rows(); ++i)
      for (std::size_t k = 0; k < kColumns * rates.size(); ++k)
        sizes[k / kColumns] += std::pow(workers.weights().row(i)[k], 2);
  };
  std::vector<double> middle(rates.size());  // the mean over a period hides swings within it
  std::vector<double> end(rates.size());
  const Step span = (20 + period - 1) / period * period;
  for (Step step = 0; step < steps; ++step) {
    workers.step(rehearsal.program(step), slope);
    if (step >= steps / 2 - span && step < steps / 2) add_sizes(middle);
    if (step >= steps - span) add_sizes(end);
  }
  std::vector<bool> stable(rates.size());
  for (std::size_t i = 0; i < rates.size(); ++i) stable[i] = end[i] < middle[i] || end[i] < 1e-20;
  return stable;
}

// The first rate that breaks: with momentum, some higher one may be stable again.
double rate_bound(Rehearsal& rehearsal, double momentum) {
  double low = 0;
  double high = 2.5 * (1 + momentum);
  std::vector<double> rates;  // each 7 % above the last
  constexpr int kRates = 100;
  for (int i = 1; i <= kRates; ++i) rates.push_back(high * std::pow(1.07, i - kRates));
  for (int round = 0; round < 2; ++round) {
    const std::vector<bool> stable = are_stable(rehearsal, rates, momentum);
    const auto broken = static_cast<std::size_t>(std::ranges::find(stable, false) - stable.begin());
    if (broken > 0) low = rates[broken - 1];
    if (broken == rates.size()) return low;
    high = rates[broken];
    constexpr int kFine = 16;
    rates.clear();
    for (int i = 1; i <= kFine; ++i) rates.push_back(low + (high - low) * i / kFine);
  }
  return low;
}

}  // namespace

Theory theory_of(const NamedStrategy& strategy, const World& world, const Trace& trace,
                 double momentum, Theorize what) {
  Rehearsal rehearsal(strategy, world, trace);
  Theory theory{.momentum = momentum,
                .noise_gain = noise_gain(rehearsal, momentum),
                .drift_gain = drift_gain(rehearsal, momentum)};
  if (what == Theorize::all) theory.rate_bound = rate_bound(rehearsal, momentum);
  return theory;
}

}  // namespace riffle
