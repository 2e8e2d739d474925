#include "race/measured.h"

#include <algorithm>
#include <cmath>

namespace riffle::race {
namespace {

using Steps = std::vector<ReportedStep>;

// The mean over ranks of what `of` gives for each; nothing where one gives nothing.
template <typename Of>
std::optional<double> mean_over_ranks(const Reports& reports, Of of) {
  double sum = 0;
  for (const RankReport& rank : reports.ranks()) {
    const std::optional<double> value = of(rank.steps());
    if (!value) return std::nullopt;
    sum += *value;
  }
  return sum / static_cast<double>(reports.ranks().size());
}

std::optional<double> mean_of(const Steps& steps, Window window,
                              std::optional<double> ReportedStep::* field) {
  double sum = 0;
  for (Step i = window.from; i < window.to; ++i) {
    const auto& value = steps[static_cast<std::size_t>(i)].*field;
    if (!value) return std::nullopt;
    sum += *value;
  }
  return sum / static_cast<double>(window.to - window.from);
}

double seconds_at(const Steps& steps, Step ended) {
  return ended == 0 ? 0 : steps[static_cast<std::size_t>(ended - 1)].seconds;
}

Curve curve_of(const Reports& reports, Step steps, double dilate) {
  constexpr Step most_points = 400;
  const Step stride = (steps + most_points - 1) / most_points;
  Curve curve;
  for (Step end = stride; stride > 0 && end <= steps; end += stride) {
    const auto loss = mean_over_ranks(reports, [&](const Steps& each) {
      return mean_of(each, {end - stride, end}, &ReportedStep::loss);
    });
    if (!loss || !std::isfinite(*loss)) return {};
    curve.step.push_back(end);
    curve.loss.push_back(*loss);
    curve.seconds.push_back(seconds_at(reports.ranks().front().steps(), end) / dilate);
  }
  return curve;
}

void judge(const RankReport& first, const Measure& how, Result& result) {
  for (Evaluation each : first.evaluations()) {
    each.seconds /= how.dilate;
    result.evaluations.push_back(each);
    result.accuracy = each.accuracy;
    if (how.target && each.accuracy >= *how.target && !result.seconds_to_target)
      result.seconds_to_target = each.seconds;
  }
}

}  // namespace

Window window_of(Step steps, int period, bool warm) {
  const Step turn = std::max(period, 1);
  const Step whole = steps / turn * turn;
  if (whole == 0) return {0, steps};
  return {warm || whole == turn ? 0 : turn, whole};
}

void measure(const Reports& reports, const Measure& how, Result& result) {
  const Step steps = reports.steps();
  result.steps = steps;
  if (reports.ranks().empty()) return;
  judge(reports.ranks().front(), how, result);
  if (steps == 0) return;
  const Window window = window_of(steps, how.period, how.warm);
  const auto count = static_cast<double>(window.to - window.from);
  result.seconds_per_step =
      mean_over_ranks(reports, [&](const Steps& each) -> std::optional<double> {
        return (seconds_at(each, window.to) - seconds_at(each, window.from)) / count / how.dilate;
      });
  result.exposed = mean_over_ranks(
      reports, [&](const Steps& each) { return mean_of(each, window, &ReportedStep::exposed); });
  if (result.exposed)
    *result.exposed /= how.dilate;
  else if (how.compute)
    result.exposed = std::max(0.0, *result.seconds_per_step - *how.compute);
  if (result.exposed) result.compute = *result.seconds_per_step - *result.exposed;
  const Step last = std::min<Step>(steps, std::max(how.period, 10));
  result.final_loss = mean_over_ranks(reports, [&](const Steps& each) {
    return mean_of(each, {steps - last, steps}, &ReportedStep::loss);
  });
  result.curve = curve_of(reports, steps, how.dilate);
}

}  // namespace riffle::race
