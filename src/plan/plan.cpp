#include "riffle/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "plan/worth.h"
#include "riffle/error.h"

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
  std::string text = candidate.exact ? "exact"
                                     : fmt::format("a step counts {:.2f} of a whole one",
                                                   candidate.effective_step);
  for (const std::string& warning : candidate.warnings) text += "; " + warning;
  return text;
}

}  // namespace

std::string reason_of(const Candidate& candidate) {
  return fmt::format("{}; {}", explain(candidate.simulation), explain_step(candidate));
}

std::vector<std::string> candidate_specs(const StrategyTable& table) {
  std::vector<std::string> all;
  for (const StrategyInfo& info : table.all())
    std::ranges::move(info.specs(), std::back_inserter(all));
  return all;
}

Plan make_plan(const Trace& trace, const Cluster& cluster, const StrategyTable& table,
               const std::vector<std::string>& specs, const SimulateOptions& options,
               const PlanProgress& progress, const Training& training) {
  check(training);
  Plan plan{.model = trace.model,
            .cluster = print(cluster),
            .candidates = {},
            .trace = trace,
            .network = cluster};
  const World world(cluster);
  std::string refused;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (progress) progress(i, specs.size(), specs[i]);
    const NamedStrategy strategy = table.make(specs[i]);
    try {
      Candidate candidate{.spec = specs[i],
                          .simulation = simulate(trace, cluster, strategy, options)};
      candidate.exact = table.info(strategy.name).exact;
      Theory theory{};  // of exact ones: workers stay together
      if (!candidate.exact) theory = theory_of(strategy, world, trace, kMomentum, Theorize::gains);
      Worth worth = worth_of(theory, strategy->traits(world), training);
      candidate.effective_step = worth.effective_step;
      candidate.breaks = worth.breaks;
      candidate.warnings = std::move(worth.warnings);
      candidate.per_effective_step = candidate.simulation.iteration / candidate.effective_step;
      candidate.reason = reason_of(candidate);
      plan.candidates.push_back(std::move(candidate));
    } catch (const UsageError& error) {
      refused = error.what();
    }
  }
  if (plan.candidates.empty()) throw UsageError(refused);
  // What breaks is no advice. Times that differ by rounding only are equal.
  std::ranges::stable_sort(plan.candidates, {}, [](const Candidate& candidate) {
    return std::tuple(candidate.breaks,
                      std::llround(std::log(candidate.per_effective_step.count()) * 1e9),
                      !candidate.exact);
  });
  plan.limit = find_limit(trace, cluster, table.make(plan.candidates.front().spec), options);
  return plan;
}

const Candidate& Plan::slowest() const {
  const auto breaks = std::ranges::find(candidates, true, &Candidate::breaks);
  return breaks == candidates.begin() ? candidates.back() : *std::prev(breaks);
}

void Plan::expect_workers(int workers, std::string_view what) const {
  const int planned = candidates.front().simulation.workers;
  if (planned != workers)
    usage_error("{}: is for {} workers, there are {}; plan for as many (riffle plan --cluster)",
                what, planned, workers);
}

}  // namespace riffle
