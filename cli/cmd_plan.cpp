#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "commands.h"
#include "common.h"
#include "page_file.h"
#include "riffle/load.h"
#include "riffle/plan.h"

namespace riffle::cli {
namespace {

struct Arguments {
  Inputs inputs;
  Output output;
  std::vector<std::string> strategies;
  std::string plan_file;
  PageFile page;
  std::uint64_t seed = 0;
  Training training;
  bool all = false;
};

// Every candidate with everything, for CSV.
report::Table whole_table(const Plan& plan) {
  report::Table table{{{"#"},
                       {"strategy", false},
                       {"step"},
                       {"effective step"},
                       {"per effective step"},
                       {"exposed"},
                       {"speed-up"},
                       {"efficiency"},
                       {"why", false}},
                      {}};
  for (const Candidate& candidate : plan.candidates) {
    const Simulation& result = candidate.simulation;
    table.rows.push_back({std::to_string(table.rows.size() + 1), candidate.spec,
                          print(result.iteration), fmt::format("{:.3f}", candidate.effective_step),
                          print(candidate.per_effective_step), print(result.exposed_communication),
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
  report::Table table{{{"#"},
                       {"strategy", false},
                       {"step"},
                       {"per effective step"},
                       {"exposed"},
                       {"speed-up"},
                       {"efficiency"}},
                      {}};
  report::Table why{{{"#"}, {"why", false}}, {}};
  for (const Candidate* candidate : list) {
    const Simulation& result = candidate->simulation;
    const std::string number = std::to_string(table.rows.size() + 1);
    table.rows.push_back({number, candidate->spec, print(result.iteration),
                          print(candidate->per_effective_step), print(result.exposed_communication),
                          fmt::format("{:.2f}", result.speedup),
                          fmt::format("{:.0f} %", result.efficiency * 100)});
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
  const Candidate& worst = plan.slowest();
  std::string text = fmt::format("{}\non {}\n\nUse {}: {} a step", print(trace), plan.cluster,
                                 best.spec, print(best.simulation.iteration));
  if (plan.candidates.size() > 1)
    text += fmt::format(", {:.2f}x faster than {}",
                        worst.per_effective_step / best.per_effective_step, worst.spec);
  text += fmt::format(".\nIts limit is {}.\n", print(plan.limit));
  for (const std::string& warning : best.warnings) text += fmt::format("Beware: {}.\n", warning);
  const Candidate& hasty = *std::ranges::min_element(
      plan.candidates, {}, [](const Candidate& each) { return each.simulation.iteration; });
  if (hasty.breaks && !best.breaks)
    text += fmt::format("{} has faster steps, {}, but breaks at this learning rate.\n", hasty.spec,
                        print(hasty.simulation.iteration));
  else if (hasty.simulation.iteration < 0.995 * best.simulation.iteration)
    text += fmt::format(
        "{} has faster steps, {}, but they are not worth it: each counts {:.2f} of a whole one, so "
        "as much progress takes {:.0f} % longer.\n",
        hasty.spec, print(hasty.simulation.iteration), hasty.effective_step,
        100 * (hasty.per_effective_step / best.per_effective_step - 1));
  const auto exact = std::ranges::find(plan.candidates, true, &Candidate::exact);
  if (!best.exact && exact != plan.candidates.end())
    text += fmt::format("The fastest with the weights of synchronous SGD: {}, {} a step.\n",
                        exact->spec, print(exact->simulation.iteration));
  return text + "\n";
}

// What the ranking shows, each simulated once more for its pictures.
Json page_of(const Plan& plan, const Arguments& arguments, const Trace& trace,
             const Cluster& cluster, const StrategyTable& table) {
  Json document = page_document("plan", trace);
  add_cluster(document, cluster);
  document["limit"] = print(plan.limit);
  Progress progress;
  for (const Candidate* candidate : shown(plan, arguments.all)) {
    progress.show(fmt::format("drawing {}", candidate->spec));
    const NamedStrategy strategy = table.make(candidate->spec);
    Timeline timeline;
    static_cast<void>(simulate(
        trace, cluster, strategy,
        {.seed = arguments.seed, .timeline = &timeline, .timeline_workers = kPageWorkers}));
    Json entry = page_result(candidate->spec, candidate->simulation);
    entry["seconds_per_effective_step"] = candidate->per_effective_step.count();
    entry["reason"] = candidate->reason;
    add_pictures(entry, trace, cluster, strategy, timeline);
    document["results"].push_back(std::move(entry));
  }
  return document;
}

void run(const Arguments& arguments) {
  arguments.page.check();
  const StrategyTable table = StrategyTable::builtin();
  const Trace trace = load_trace(arguments.inputs.trace);
  const Cluster cluster = load_cluster(arguments.inputs.cluster);
  const auto specs = arguments.strategies.empty() ? candidate_specs(table)
                                                  : expand_strategies(arguments.strategies, table);
  Plan plan;
  {
    Progress progress;
    plan = make_plan(
        trace, cluster, table, specs, {.seed = arguments.seed},
        [&](std::size_t done, std::size_t all, const std::string& spec) {
          progress.show(fmt::format("planning: {}/{} {}", done + 1, all, spec));
        },
        arguments.training);
  }
  if (!arguments.plan_file.empty()) write_file(arguments.plan_file, to_json(plan));
  if (arguments.page.wanted())
    arguments.page.write(page_of(plan, arguments, trace, cluster, table));
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
  add_training(*command, arguments->training);
  command->add_option("--seed", arguments->seed, "of jitter and stragglers")->capture_default_str();
  arguments->page.add_to(*command);
  arguments->output.add_to(*command);
  command->footer(
      "Example: riffle plan --trace bert-base --cluster "
      "racks:4x4,inner=20us/10Gbps,outer=200us/1Gbps");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace riffle::cli
