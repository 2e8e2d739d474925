#include <fmt/format.h>

#include "commands.h"
#include "common.h"
#include "riffle/load.h"
#include "riffle/plan.h"
#include "riffle/simulate.h"

namespace riffle::cli {
namespace {

struct Arguments {
  Inputs inputs;
  Output output;
  std::vector<std::string> strategies;
};

Table plan_table(const Plan& plan) {
  Table table{{{"#"},
               {"strategy", false},
               {"step"},
               {"exposed"},
               {"speed-up"},
               {"efficiency"},
               {"why", false}},
              {}};
  for (const Candidate& candidate : plan.candidates) {
    const Simulation& result = candidate.simulation;
    table.rows.push_back({std::to_string(table.rows.size() + 1), candidate.spec,
                          print(result.iteration), print(result.exposed_communication),
                          fmt::format("{:.2f}", result.speedup),
                          fmt::format("{:.0f} %", result.efficiency * 100), candidate.reason});
  }
  return table;
}

std::string advice(const Plan& plan, const Trace& trace) {
  const Candidate& best = plan.candidates.front();
  const Candidate& worst = plan.candidates.back();
  return fmt::format("{}\non {}\n\nUse {}: {} a step, {:.2f}x faster than {}.\n\n", print(trace),
                     plan.cluster, best.spec, print(best.simulation.iteration),
                     worst.per_effective_step / best.per_effective_step, worst.spec);
}

void run(const Arguments& arguments) {
  const StrategyTable table = StrategyTable::builtin();
  const Trace trace = load_trace(arguments.inputs.trace);
  const Cluster cluster = load_cluster(arguments.inputs.cluster);
  const auto specs = arguments.strategies.empty() ? candidate_specs(table)
                                                  : expand_strategies(arguments.strategies, table);
  Plan plan;
  {
    Progress progress;
    plan = make_plan(
        trace, cluster, table, specs,
        [&](const NamedStrategy& strategy) { return simulate(trace, cluster, strategy); },
        [&](std::size_t done, std::size_t all, const std::string& spec) {
          progress.show(fmt::format("planning: {}/{} {}", done + 1, all, spec));
        });
  }
  const Output& output = arguments.output;
  if (output.json()) return output.write(to_json(plan));
  if (output.csv()) return output.write(plan_table(plan));
  output.write(advice(plan, trace) + print_table(plan_table(plan), output.colour()));
}

}  // namespace

void add_plan(CLI::App& app) {
  auto* command =
      app.add_subcommand("plan", "rank the strategies for a model on a cluster, and why");
  const auto arguments = std::make_shared<Arguments>();
  arguments->inputs.add_to(*command);
  command->add_option("--strategy", arguments->strategies,
                      "only these: NAME[:key=value,...], repeatable (default: every one)");
  arguments->output.add_to(*command);
  command->footer(
      "Example: riffle plan --trace bert-base --cluster "
      "racks:4x4,inner=20us/10Gbps,outer=200us/1Gbps");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace riffle::cli
