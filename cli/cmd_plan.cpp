#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
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
  std::string plan_file;
  std::uint64_t seed = 0;
  bool all = false;
};

// Every candidate with everything, for CSV.
report::Table whole_table(const Plan& plan) {
  report::Table table{{{"#"},
                       {"strategy", false},
                       {"step"},
                       {"per effective step"},
                       {"exposed"},
                       {"speed-up"},
                       {"efficiency"},
                       {"why", false}},
                      {}};
  for (const Candidate& candidate : plan.candidates) {
    const Simulation& result = candidate.simulation;
    table.rows.push_back({std::to_string(table.rows.size() + 1), candidate.spec,
                          print(result.iteration), print(candidate.per_effective_step),
                          print(result.exposed_communication),
                          fmt::format("{:.2f}", result.speedup),
                          fmt::format("{:.0f} %", result.efficiency * 100), candidate.reason});
  }
  return table;
}

// The best of each strategy, or all of them.
std::vector<const Candidate*> shown(const Plan& plan, bool all) {
  std::vector<const Candidate*> list;
  for (const Candidate& candidate : plan.candidates)
    if (all || std::ranges::none_of(list, [&](const Candidate* better) {
          return better->simulation.strategy == candidate.simulation.strategy;
        }))
      list.push_back(&candidate);
  return list;
}

// Figures first, then a sentence for each: together they would be too wide to read.
std::string ranking(const Plan& plan, bool all, bool colour) {
  const auto list = shown(plan, all);
  const bool discounted =
      std::ranges::any_of(list, [](const Candidate* each) { return each->effective_step != 1; });
  report::Table table{{{"#"}, {"strategy", false}, {"step"}}, {}};
  if (discounted) table.columns.push_back({"per effective step"});
  for (const char* name : {"exposed", "speed-up", "efficiency"}) table.columns.push_back({name});
  report::Table why{{{"#"}, {"why", false}}, {}};
  for (const Candidate* candidate : list) {
    const Simulation& result = candidate->simulation;
    const std::string number = std::to_string(table.rows.size() + 1);
    std::vector<std::string> row{number, candidate->spec, print(result.iteration)};
    if (discounted) row.push_back(print(candidate->per_effective_step));
    row.push_back(print(result.exposed_communication));
    row.push_back(fmt::format("{:.2f}", result.speedup));
    row.push_back(fmt::format("{:.0f} %", result.efficiency * 100));
    table.rows.push_back(std::move(row));
    why.rows.push_back({number, candidate->reason});
  }
  std::string text = report::print_table(table, colour) + "\n" + report::print_table(why, colour);
  if (const std::size_t more = plan.candidates.size() - list.size(); more > 0)
    text += fmt::format("\n{} other setting{} did no better than their strategy's best: --all.\n",
                        more, more == 1 ? "" : "s");
  return text;
}

std::string advice(const Plan& plan, const Trace& trace) {
  const Candidate& best = plan.candidates.front();
  const Candidate& worst = plan.candidates.back();
  std::string text = fmt::format("{}\non {}\n\nUse {}: {} a step", print(trace), plan.cluster,
                                 best.spec, print(best.simulation.iteration));
  if (plan.candidates.size() > 1)
    text += fmt::format(", {:.2f}x faster than {}",
                        worst.per_effective_step / best.per_effective_step, worst.spec);
  text += fmt::format(".\nIts limit is {}.\n", print(plan.limit));
  const auto exact = std::ranges::find(plan.candidates, true, &Candidate::exact);
  if (!best.exact && exact != plan.candidates.end())
    text += fmt::format("The fastest with the weights of synchronous SGD: {}, {} a step.\n",
                        exact->spec, print(exact->simulation.iteration));
  return text + "\n";
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
        [&](const NamedStrategy& strategy, const Cluster& on) {
          return simulate(trace, on, strategy, {.seed = arguments.seed});
        },
        [&](std::size_t done, std::size_t all, const std::string& spec) {
          progress.show(fmt::format("planning: {}/{} {}", done + 1, all, spec));
        });
  }
  if (!arguments.plan_file.empty()) write_file(arguments.plan_file, to_json(plan));
  const Output& output = arguments.output;
  if (output.json()) return output.write(to_json(plan));
  if (output.csv()) return output.write(whole_table(plan));
  output.write(advice(plan, trace) + ranking(plan, arguments.all, output.colour()));
}

}  // namespace

void add_plan(CLI::App& app) {
  auto* command =
      app.add_subcommand("plan", "rank the strategies for a model on a cluster, and why");
  const auto arguments = std::make_shared<Arguments>();
  arguments->inputs.add_to(*command);
  command->add_option("--strategy", arguments->strategies,
                      "only these: NAME[:key=value,...], repeatable (default: every one)");
  command->add_flag("--all", arguments->all,
                    "every setting, not only each strategy's best (JSON and CSV have all)");
  command->add_option("--plan-file", arguments->plan_file,
                      "write the whole plan as JSON, for train, C++ and Python");
  command->add_option("--seed", arguments->seed, "of jitter and stragglers")->capture_default_str();
  arguments->output.add_to(*command);
  command->footer(
      "Example: riffle plan --trace bert-base --cluster "
      "racks:4x4,inner=20us/10Gbps,outer=200us/1Gbps");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace riffle::cli
