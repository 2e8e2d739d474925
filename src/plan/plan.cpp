#include "riffle/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/json.h"
#include "riffle/error.h"

namespace riffle {
namespace {

double option(const NamedStrategy& strategy, std::string_view key) {
  double value = 0;
  for (const auto& [name, text] : strategy.options)
    if (name == key) std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool mixes_late(const NamedStrategy& strategy) {
  return strategy.name == "dasgd" &&
         std::ranges::find(strategy.options, std::pair<std::string, std::string>("merge", "mix")) !=
             strategy.options.end();
}

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

std::string explain_step(const NamedStrategy& strategy, const Candidate& candidate) {
  if (candidate.exact) return "exact";
  if (mixes_late(strategy))
    return fmt::format("a step counts {:.2f}: mixing discards 1-xi of the delayed ones",
                       candidate.effective_step);
  return "not exact, a step counted as a whole one";
}

}  // namespace

// papers.md 4.2: tau_eff = tau - (1 - xi) * d of every tau steps.
double effective_step(const NamedStrategy& strategy) {
  if (!mixes_late(strategy)) return 1;
  const double tau = option(strategy, "tau");
  return (tau - (1 - option(strategy, "xi")) * option(strategy, "delay")) / tau;
}

Plan make_plan(const Trace& trace, const Cluster& cluster, const StrategyTable& table,
               const std::vector<std::string>& specs, const Evaluator& evaluate,
               const PlanProgress& progress) {
  Plan plan{.model = trace.model, .cluster = print(cluster), .candidates = {}};
  std::string refused;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (progress) progress(i, specs.size(), specs[i]);
    const NamedStrategy strategy = table.make(specs[i]);
    try {
      Candidate candidate{.spec = specs[i], .simulation = evaluate(strategy, cluster)};
      candidate.effective_step = effective_step(strategy);
      candidate.per_effective_step = candidate.simulation.iteration / candidate.effective_step;
      candidate.exact = table.info(strategy.name).exact;
      candidate.reason =
          fmt::format("{}; {}", explain(candidate.simulation), explain_step(strategy, candidate));
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
  plan.limit = find_limit(table.make(plan.candidates.front().spec), cluster, evaluate);
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
    Json entry = Json::parse(to_json(candidate.simulation));
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
