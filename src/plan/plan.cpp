#include "riffle/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "riffle/error.h"

namespace riffle {
namespace {

// Where the time of a step goes, in a sentence.
std::string explain(const Simulation& simulation, const Seconds compute) {
  const double exposed = simulation.exposed_communication / simulation.iteration;
  const Seconds nothing_hidden = simulation.iteration - compute;
  const std::size_t messages = simulation.buckets.size();
  const std::string sent =
      fmt::format("{} exchange{} of {} per step", messages, messages == 1 ? "" : "s",
                  print(Bytes{static_cast<std::int64_t>(simulation.bytes_per_worker)}));
  if (simulation.workers == 1) return "one worker: nothing to exchange";
  if (exposed < 0.02) return fmt::format("{}, all but hidden under backward", sent);
  return fmt::format("{}; {} of each step ({:.0f} %) waits for the network", sent,
                     print(nothing_hidden), exposed * 100);
}

}  // namespace

std::vector<std::string> candidate_specs(const StrategyTable& table) {
  std::vector<std::string> specs;
  for (const StrategyInfo& info : table.all()) {
    specs.push_back(info.name);
    for (const OptionInfo& option : info.options) {
      const bool words = option.values.find('|') != std::string::npos;
      if (!words || option.key == "wire" || option.key == "algorithm") continue;
      std::size_t begin = option.values.find('|') + 1;
      while (begin != 0) {
        const std::size_t end = option.values.find('|', begin);
        specs.push_back(fmt::format("{}:{}={}", info.name, option.key,
                                    option.values.substr(begin, end - begin)));
        begin = end + 1;
      }
    }
  }
  return specs;
}

Plan make_plan(const Trace& trace, const Cluster& cluster, const StrategyTable& table,
               const std::vector<std::string>& specs, const Evaluator& evaluate,
               const PlanProgress& progress) {
  Plan plan{trace.model, print(cluster), {}};
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (progress) progress(i, specs.size(), specs[i]);
    Candidate candidate{.spec = specs[i], .simulation = evaluate(table.make(specs[i]))};
    candidate.per_effective_step = candidate.simulation.iteration / candidate.effective_step;
    candidate.reason = explain(candidate.simulation, candidate.simulation.compute);
    plan.candidates.push_back(std::move(candidate));
  }
  std::ranges::stable_sort(plan.candidates, {}, &Candidate::per_effective_step);
  return plan;
}

std::string to_json(const Plan& plan) {
  Json json{{"riffle", "plan"},
            {"version", 1},
            {"model", plan.model},
            {"cluster", plan.cluster},
            {"candidates", Json::array()}};
  for (const Candidate& candidate : plan.candidates) {
    Json entry = Json::parse(to_json(candidate.simulation));
    entry["spec"] = candidate.spec;
    entry["effective_step"] = candidate.effective_step;
    entry["seconds_per_effective_step"] = candidate.per_effective_step.count();
    entry["reason"] = candidate.reason;
    json["candidates"].push_back(std::move(entry));
  }
  return json.dump(1) + "\n";
}

}  // namespace riffle
