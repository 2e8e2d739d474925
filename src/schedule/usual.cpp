#include "schedule/usual.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/median.h"

namespace riffle::schedule {
namespace {

constexpr double kLeast = 1e-9;  // of a second, so that there is a logarithm

double value_at(std::vector<double> values, double share) {
  const auto place =
      static_cast<std::ptrdiff_t>(std::ceil(share * static_cast<double>(values.size() - 1)));
  std::ranges::nth_element(values, values.begin() + place);
  return values[static_cast<std::size_t>(place)];
}

}  // namespace

// What it wavers by is taken around its present middle: a number that creeps away from what was
// usual does not make itself noise.
double Usual::threshold() const {
  if (learned_ < kLearned) return std::log(kFarOff);
  const std::vector<double> values(calm_.begin(), calm_.end());
  const double middle = median(values);
  std::vector<double> distances;
  for (const double each : values) distances.push_back(std::abs(each - middle));
  const double spreads = kSpreads * (1 + kFewer / static_cast<double>(values.size()));
  return std::max(std::log(kFactor), spreads * value_at(std::move(distances), 0.9));
}

bool Usual::is_away(double value, double thresholds) const {
  const double sign = way_ == Way::up ? 1 : -1;
  return sign * (value - usual_) > thresholds * threshold() &&
         std::abs(std::exp(value) - std::exp(usual_)) > kNoise.count();
}

void Usual::remember(double value) {
  calm_.push_back(value);
  if (calm_.size() > kRemembered) calm_.pop_front();
}

std::optional<double> Usual::look(Seconds value) {
  const double now = std::log(std::max(value.count(), kLeast));
  if (learned_ >= kFew && is_away(now, 1)) {
    const bool far = is_away(now, 2);
    far_ = far_ || far;
    last_ = now;
    away_ += far && steady_ >= kSteady ? 2 : 1;
    if (away_ < kWindows) return std::nullopt;
    return std::exp(now - usual_);
  }
  // What was away only once wavers.
  if (std::exchange(away_, 0) > 0) remember(last_);
  steady_ = std::exchange(far_, false) ? 0 : std::min(steady_ + 1, kSteady);
  remember(now);
  if (learned_ < kDecided) {
    ++learned_;
    usual_ = median(std::vector<double>(calm_.begin(), calm_.end()));
  }
  return std::nullopt;
}

}  // namespace riffle::schedule
