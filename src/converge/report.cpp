#include "base/json.h"
#include "riffle/converge.h"

namespace riffle {

std::string to_json(const std::vector<Convergence>& results) {
  Json json{{"results", Json::array()}};
  for (const Convergence& each : results) {
    Json entry{{"strategy", each.strategy},
               {"problem", each.problem},
               {"workers", each.workers},
               {"steps", each.steps},
               {"loss", each.loss},
               {"accuracy", each.accuracy ? Json(*each.accuracy) : Json()},
               {"consensus_distance", each.consensus_distance},
               {"diverged", each.diverged}};
    if (!each.gradient_norm_squared.empty())
      entry["gradient_norm_squared"] = each.gradient_norm_squared;
    if (!each.test_loss.empty()) entry["test_loss"] = each.test_loss;
    if (!each.test_accuracy.empty()) entry["test_accuracy"] = each.test_accuracy;
    if (each.seconds_per_step) {
      entry["seconds_per_step"] = each.seconds_per_step->count();
      entry["seconds"] = Json::array();
      for (const Step step : each.steps)
        entry["seconds"].push_back(static_cast<double>(step) * each.seconds_per_step->count());
    }
    if (each.theory)
      entry["theory"] = {{"momentum", each.theory->momentum},
                         {"noise_gain", each.theory->noise_gain},
                         {"drift_gain", each.theory->drift_gain},
                         {"rate_bound", each.theory->rate_bound.value()}};
    json["results"].push_back(std::move(entry));
  }
  return json.dump(1) + "\n";
}

std::string batches_json(LearningProblem& problem, int workers, Step steps) {
  Json json{{"start", problem.start()}, {"samples", Json::array()}};
  for (Step step = 0; step < steps; ++step) {
    Json all = Json::array();
    for (int worker = 0; worker < workers; ++worker) all.push_back(problem.batch(worker, step));
    json["samples"].push_back(std::move(all));
  }
  return json.dump() + "\n";
}

}  // namespace riffle
