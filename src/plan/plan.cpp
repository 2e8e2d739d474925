#include "riffle/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "riffle/error.h"
#include "simulate/report.h"

namespace riffle {
namespace {

// Where the time of a step goes, in a sentence.
std::string explain(const Simulation& simulation) {
  if (simulation.workers == 1) return "one worker: nothing to exchange";
  const double exposed = simulation.exposed_communication / simulation.iteration;
  const std::size_t messages = simulation.buckets.size();
  const std::string sent =
      fmt::format("{} exchange{}, {} a step", messages, messages == 1 ? "" : "s",
                  print(Bytes{static_cast<std::int64_t>(simulation.bytes_per_worker)}));
  if (exposed < 0.02) return fmt::format("{}, all but hidden", sent);
  return fmt::format("{}; {:.0f} % of it waits for the network", sent, exposed * 100);
}

std::string explain_step(const Candidate& candidate) {
  if (candidate.exact) return "exact";
  if (candidate.effective_step != 1)
    return fmt::format("a step counts {:.2f} of a whole one", candidate.effective_step);
  return "not exact, a step counted as a whole one";
}

}  // namespace

std::vector<std::string> candidate_specs(const StrategyTable& table) {
  std::vector<std::string> all;
  for (const StrategyInfo& info : table.all())
    std::ranges::move(info.specs(), std::back_inserter(all));
  return all;
}

Plan make_plan(const Trace& trace, const Cluster& cluster, const StrategyTable& table,
               const std::vector<std::string>& specs, const SimulateOptions& options,
               const PlanProgress& progress) {
  Plan plan{.model = trace.model, .cluster = print(cluster), .candidates = {}};
  const World world(cluster);
  std::string refused;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (progress) progress(i, specs.size(), specs[i]);
    const NamedStrategy strategy = table.make(specs[i]);
    try {
      Candidate candidate{.spec = specs[i],
                          .simulation = simulate(trace, cluster, strategy, options)};
      candidate.effective_step = strategy->traits(world).effective_step;
      candidate.per_effective_step = candidate.simulation.iteration / candidate.effective_step;
      candidate.exact = table.info(strategy.name).exact;
      candidate.reason =
          fmt::format("{}; {}", explain(candidate.simulation), explain_step(candidate));
      plan.candidates.push_back(std::move(candidate));
    } catch (const UsageError& error) {
      refused = error.what();
    }
  }
  if (plan.candidates.empty()) throw UsageError(refused);
  // Times that differ by rounding only are equal.
  std::ranges::stable_sort(plan.candidates, {}, [](const Candidate& candidate) {
    return std::pair(std::llround(std::log(candidate.per_effective_step.count()) * 1e9),
                     !candidate.exact);
  });
  plan.limit = find_limit(trace, cluster, table.make(plan.candidates.front().spec), options);
  return plan;
}

std::string to_json(const Plan& plan) {
  Json json{{"riffle", "plan"},
            {"version", 1},
            {"model", plan.model},
            {"cluster", plan.cluster},
            {"limit",
             {{"what", plan.limit.what}, {"link", plan.limit.link}, {"share", plan.limit.share}}},
            {"candidates", Json::array()}};
  for (const Candidate& candidate : plan.candidates) {
    Json entry = json_of(candidate.simulation);
    entry["spec"] = candidate.spec;
    entry["exact"] = candidate.exact;
    entry["effective_step"] = candidate.effective_step;
    entry["seconds_per_effective_step"] = candidate.per_effective_step.count();
    entry["reason"] = candidate.reason;
    json["candidates"].push_back(std::move(entry));
  }
  return json.dump(1) + "\n";
}

}  // namespace riffle
