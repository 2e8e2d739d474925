// Fitted by bench/effective_step.py on training that `riffle converge` simulates; docs/converge.md
// has the table, and bench/advice.py asks whether it holds elsewhere.
#include "plan/worth.h"

#include <fmt/format.h>

#include <cmath>

#include "converge/shards.h"
#include "riffle/error.h"

namespace riffle {
namespace {

// worth = traits / (1 + kNoise (rate noise_gain)^2 + kDrift uneven drift_gain)
constexpr double kNoise = 0.0298;
constexpr double kDrift = 0.0312;
// Steps that data of this kind make so much cheaper are worth a word.
constexpr double kUneven = 0.1;
// The network of `riffle converge` stops learning at about this rate under synchronous SGD, and the
// earlier the further apart noise drives workers.
constexpr double kRate = 0.5;
constexpr double kRatePerNoise = 0.2;

// How much workers' data differ: the variance of their shares of ten classes, which is 1 where each
// has one class only.
double unevenness(const Training& training) {
  const double alpha = convergence::parse_split(training.split);
  return alpha == 0 ? 0 : 1 / (1 + 10 * alpha);
}

// Where that is; theory's bound is of the steepest direction of a quadratic, and networks learn
// well above it.
double rate_that_breaks(const Theory& theory) {
  return kRate / (1 + kRatePerNoise * theory.noise_gain);
}

}  // namespace

void check(const Training& training) {
  constexpr double kMost = 1000;
  if (!(training.learning_rate > 0 && training.learning_rate <= kMost))
    usage_error("--learning-rate: {} must be above 0 and at most {}", training.learning_rate,
                kMost);
  static_cast<void>(unevenness(training));
}

Worth worth_of(const Theory& theory, const Traits& traits, const Training& training) {
  const double noise = kNoise * std::pow(training.learning_rate * theory.noise_gain, 2);
  const double drift = kDrift * unevenness(training) * theory.drift_gain;
  Worth worth{.effective_step = traits.effective_step / (1 + noise + drift)};
  worth.breaks = training.learning_rate > rate_that_breaks(theory);
  if (worth.breaks)
    worth.warnings.push_back(fmt::format(
        "a learning rate of {} is too high for it: as converge measures it breaks above {:.2g}, "
        "synchronous SGD above {:.2g}",
        training.learning_rate, rate_that_breaks(theory), kRate));
  if (drift > kUneven)
    worth.warnings.push_back(
        fmt::format("data are too uneven for it ({}): that costs {:.0f} % of "
                    "every step",
                    training.split, 100 * drift / (1 + drift)));
  return worth;
}

}  // namespace riffle
