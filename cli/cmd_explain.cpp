#include <fmt/format.h>

#include "commands.h"
#include "common.h"
#include "riffle/load.h"
#include "riffle/simulate.h"

namespace riffle::cli {
namespace {

struct Arguments {
  Inputs inputs;
  Output output;
  std::string strategy;
};

std::string bucket_lines(const Simulation& result) {
  std::string text;
  for (std::size_t i = 0; i < result.buckets.size(); ++i) {
    const SimulatedBucket& bucket = result.buckets[i];
    text += fmt::format("  {:>3}  {:>9}  {:>9} .. {:>9}  {} layers, {} .. {}\n", i,
                        print(bucket.bytes), print(bucket.start), print(bucket.end),
                        bucket.layers.size(), bucket.layers.back(), bucket.layers.front());
  }
  return text;
}

void run(const Arguments& arguments) {
  const StrategyTable table = StrategyTable::builtin();
  const NamedStrategy strategy = table.make(arguments.strategy);
  const StrategyInfo& info = table.info(strategy.name);
  const Trace trace = load_trace(arguments.inputs.trace);
  const Cluster cluster = load_cluster(arguments.inputs.cluster);
  const Simulation result = simulate(trace, cluster, strategy);
  const World world(cluster);
  const Traits traits = strategy->traits(world);
  std::string text = fmt::format("{}: {}\npaper: {}\n\n", strategy.spec, info.summary, info.paper);
  text += fmt::format("On {} with {}\n\n", print(cluster), print(trace));
  text += traits.exact ? "Every worker ends each step with the weights of synchronous SGD.\n"
                       : "Workers keep weights of their own and mix them.\n";
  text += fmt::format("A worker sends {} in {:.0f} messages per step.\n",
                      print(Bytes{static_cast<std::int64_t>(result.bytes_per_worker)}),
                      result.messages_per_worker);
  text += fmt::format("Of the {} that a step takes, {} wait for the network.\n\n",
                      print(result.iteration), print(result.exposed_communication));
  text += "The buckets of a step, in the order backward completes them:\n";
  arguments.output.write(text + bucket_lines(result));
}

}  // namespace

void add_explain(CLI::App& app) {
  auto* command = app.add_subcommand("explain", "say in words and pictures what a strategy does");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("strategy", arguments->strategy, "NAME[:key=value,...]")->required();
  arguments->inputs.add_to(*command);
  command->add_option("--output", arguments->output.file, "write to a file");
  command->footer("Example: riffle explain mg-wfbp --trace resnet50");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace riffle::cli
