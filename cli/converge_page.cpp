#include "converge_page.h"

#include <fmt/format.h>

namespace riffle::cli {
namespace {

Json curve_of(const Convergence& training) {
  Json curve{{"step", training.steps},
             {"loss", training.loss},
             {"consensus_distance", training.consensus_distance}};
  if (training.seconds_per_step) {
    curve["seconds"] = Json::array();
    for (const Step step : training.steps)
      curve["seconds"].push_back(static_cast<double>(step) * training.seconds_per_step->count());
  }
  return curve;
}

// On samples never trained on, where `--test` asked for it.
Json evaluations_of(const Convergence& training, const Json& curve) {
  Json evaluations = Json::array();
  for (std::size_t i = 0; i < training.test_accuracy.size(); ++i) {
    Json each{{"step", training.steps[i]}, {"accuracy", training.test_accuracy[i]}};
    if (curve.contains("seconds")) each["seconds"] = curve["seconds"][i];
    evaluations.push_back(std::move(each));
  }
  return evaluations;
}

}  // namespace

Json page_result(const Convergence& training) {
  Json result{{"contender", training.strategy}, {"curve", curve_of(training)}};
  result["evaluations"] = evaluations_of(training, result["curve"]);
  if (training.seconds_per_step) result["seconds_per_step"] = training.seconds_per_step->count();
  if (training.theory)
    result["theory"] = {{"noise_gain", training.theory->noise_gain},
                        {"drift_gain", training.theory->drift_gain},
                        {"rate_bound", training.theory->rate_bound.value()}};
  const Step last = training.steps.empty() ? 0 : training.steps.back();
  result["steps"] = last;
  if (training.diverged) {
    result["failed"] = fmt::format("a loss was not finite after step {}", last);
    return result;
  }
  result["final_loss"] = training.loss.back();
  if (training.accuracy) result["accuracy"] = *training.accuracy;
  return result;
}

}  // namespace riffle::cli
