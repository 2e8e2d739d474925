#include <fmt/format.h>

#include "base/files.h"
#include "base/text.h"
#include "commands.h"
#include "common.h"
#include "explain_words.h"
#include "riffle/error.h"
#include "riffle/load.h"
#include "strategies/example.h"
#include "verify/report.h"

namespace riffle::cli {
namespace {

struct Arguments {
  Output output;
  std::vector<std::string> strategies;
  std::vector<std::string> programs;
  int workers = 16;
  std::string cluster;
  std::string dead;
  std::string trace;
};

World make_world(const Arguments& arguments) {
  const Cluster cluster = arguments.cluster.empty() ? example_racks(arguments.workers)
                                                    : load_cluster(arguments.cluster);
  Membership live = Membership::all(cluster.size());
  if (arguments.dead.empty()) return {cluster, std::move(live)};
  std::vector<Rank> ranks = live.ranks.ranks();
  for (const std::string_view text : split(arguments.dead, ',')) {
    const std::int64_t rank = parse_integer(text, "--dead");
    if (std::erase(ranks, static_cast<Rank>(rank)) == 0)
      usage_error("--dead: {} is no rank of 0..{}, or given twice", rank, cluster.size() - 1);
  }
  return {cluster, {1, Group(std::move(ranks))}};
}

// A file is the program of a step; together they are a period. Sizes of buckets do not matter.
Verification verify_files(const std::vector<std::string>& files, const World& world) {
  std::vector<Program> programs;
  int last = 0;
  for (const std::string& file : files) {
    programs.push_back(program_from_json(read_file(file), file));
    for (const Exchange& exchange : programs.back().exchanges)
      last = std::max(last, exchange.bucket);
  }
  if (last > 1'000'000) usage_error("{}: bucket {} is beyond 1000000", files.front(), last);
  BucketPlan buckets;
  for (int id = 0; id <= last; ++id)
    buckets.push_back(
        {.id = id, .first = last - id, .last = last - id, .bytes = mebibytes(1), .compute = {}});
  Verification result = verify(programs, true, world, buckets);
  result.strategy = fmt::format("{}{}", files.front(), files.size() > 1 ? " ..." : "");
  return result;
}

std::string yes(bool holds) {
  return holds ? "yes" : "NO";
}

report::Table result_table(const std::vector<Verification>& results) {
  report::Table table{{{"strategy", false},
                       {"workers"},
                       {"proved", false},
                       {"partition", false},
                       {"no deadlock", false},
                       {"mean kept", false},
                       {"period"},
                       {"mixing rate"},
                       {"steps to consensus"}},
                      {}};
  for (const Verification& each : results)
    table.rows.push_back(
        {each.strategy, std::to_string(each.workers), yes(each.ok()), yes(each.partition),
         yes(each.deadlock_free), each.mean_preserved ? yes(*each.mean_preserved) : "outer",
         each.period ? std::to_string(*each.period) : "none",
         each.mixing_rate ? fmt::format("{:.4f}", *each.mixing_rate) : "-",
         each.steps_to_consensus ? std::to_string(*each.steps_to_consensus) : "never"});
  return table;
}

std::string problem_lines(const std::vector<Verification>& results, bool colour) {
  std::string text;
  for (const Verification& each : results)
    for (const Problem& problem : each.problems)
      text += fmt::format("{}{} {}:{} {}\n", colour ? "\x1b[31m" : "", each.strategy,
                          name_of(problem.check), colour ? "\x1b[0m" : "", print(problem));
  return text.empty() ? text : "\n" + text;
}

std::string rounding_lines(const std::vector<Verification>& results) {
  std::string text;
  for (const Verification& each : results)
    if (each.rounding)
      text += fmt::format("{}: {}\n", each.strategy, rounding_sentence(*each.rounding));
  for (const Verification& each : results)
    if (each.low_rank)
      text += fmt::format("{}: {}\n", each.strategy, low_rank_sentence(*each.low_rank));
  return text.empty() ? text : "\n" + text;
}

void write(const Arguments& arguments, const std::vector<Verification>& results) {
  const Output& output = arguments.output;
  if (output.csv()) return output.write(result_table(results));
  if (!output.json())
    return output.write(report::print_table(result_table(results), output.colour()) +
                        rounding_lines(results) + problem_lines(results, output.colour()));
  if (results.size() == 1) return output.write(to_json(results.front()));
  Json json{{"results", Json::array()}};
  for (const Verification& each : results) json["results"].push_back(json_of(each));
  output.write(json.dump(1) + "\n");
}

void run(const Arguments& arguments) {
  const StrategyTable table = StrategyTable::builtin();
  const World world = make_world(arguments);
  const Trace trace = arguments.trace.empty() ? example_trace() : load_trace(arguments.trace);
  std::vector<Verification> results;
  if (!arguments.programs.empty()) results.push_back(verify_files(arguments.programs, world));
  {
    Progress progress;
    std::vector<std::string> specs = expand_strategies(arguments.strategies, table);
    if (specs.empty() && results.empty()) specs = expand_strategies({"all"}, table);
    for (const std::string& spec : specs) {
      progress.show(fmt::format("proving {} for {} workers", spec, world.size()));
      results.push_back(verify(table.make(spec), world, trace));
    }
  }
  write(arguments, results);
  const auto refuted = std::ranges::count_if(results, [](const auto& each) { return !each.ok(); });
  if (refuted > 0)
    throw std::runtime_error(fmt::format("{} of {} refuted", refuted, results.size()));
}

}  // namespace

void add_verify(CLI::App& app) {
  auto* command = app.add_subcommand(
      "verify", "prove a strategy's schedule: partition, no deadlock, mean kept, mixing rate");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("strategy,--strategy", arguments->strategies,
                      "NAME[:key=value,...], repeatable, or all (the default)");
  command
      ->add_option("--workers", arguments->workers,
                   "this many, in racks of about the square root, unless --cluster is given")
      ->capture_default_str();
  command->add_option("--cluster", arguments->cluster,
                      "a cluster: flat:, racks:, sites: or a JSON file");
  command->add_option("--dead", arguments->dead, "ranks that are missing, e.g. 3,7");
  command->add_option("--trace", arguments->trace, "a model to cut into buckets");
  command->add_option("--program", arguments->programs,
                      "a program as JSON, one for each step of a period");
  arguments->output.add_to(*command);
  command->footer("Example: riffle verify ds-sync:pattern=bottleneck --workers 16 --dead 3,7");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace riffle::cli
