#include <fmt/format.h>

#include "base/json.h"
#include "commands.h"
#include "common.h"
#include "riffle/load.h"
#include "riffle/simulate.h"

namespace riffle::cli {
namespace {

struct Arguments {
  Inputs inputs;
  Output output;
  std::vector<std::string> strategies{"mg-wfbp"};
};

Table result_table(const std::vector<std::pair<std::string, Simulation>>& results) {
  Table table{{{"strategy", false},
               {"step"},
               {"compute"},
               {"exposed"},
               {"speed-up"},
               {"efficiency"},
               {"buckets"},
               {"sent per worker"},
               {"messages"}},
              {}};
  for (const auto& [spec, result] : results)
    table.rows.push_back(
        {spec, print(result.iteration), print(result.compute), print(result.exposed_communication),
         fmt::format("{:.2f}", result.speedup), fmt::format("{:.0f} %", result.efficiency * 100),
         std::to_string(result.buckets.size()),
         print(Bytes{static_cast<std::int64_t>(result.bytes_per_worker)}),
         fmt::format("{:.0f}", result.messages_per_worker)});
  return table;
}

void run(const Arguments& arguments) {
  const StrategyTable table = StrategyTable::builtin();
  const Trace trace = load_trace(arguments.inputs.trace);
  const Cluster cluster = load_cluster(arguments.inputs.cluster);
  std::vector<std::pair<std::string, Simulation>> results;
  Progress progress;
  for (const std::string& spec : expand_strategies(arguments.strategies, table)) {
    progress.show(fmt::format("simulating {} on {} workers", spec, cluster.size()));
    results.emplace_back(spec, simulate(trace, cluster, table.make(spec)));
  }
  if (!arguments.output.json()) return arguments.output.write(result_table(results));
  if (results.size() == 1) return arguments.output.write(to_json(results.front().second));
  Json json{{"results", Json::array()}};
  for (const auto& [spec, result] : results)
    json["results"].push_back(Json::parse(to_json(result)));
  arguments.output.write(json.dump(1) + "\n");
}

}  // namespace

void add_simulate(CLI::App& app) {
  auto* command = app.add_subcommand("simulate", "predict the time of a step under a strategy");
  const auto arguments = std::make_shared<Arguments>();
  arguments->inputs.add_to(*command);
  command
      ->add_option("--strategy", arguments->strategies,
                   "NAME[:key=value,...], repeatable, or all (see riffle strategies)")
      ->capture_default_str();
  arguments->output.add_to(*command);
  command->footer(
      "Example: riffle simulate --trace vgg16 --cluster flat:8,latency=1ms,bandwidth=1Gbps "
      "--strategy wfbp --strategy mg-wfbp");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace riffle::cli
