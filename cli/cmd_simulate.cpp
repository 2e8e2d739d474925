#include <fmt/format.h>

#include "base/files.h"
#include "commands.h"
#include "common.h"
#include "page_file.h"
#include "report/gantt.h"
#include "riffle/error.h"
#include "riffle/load.h"
#include "simulate/report.h"

namespace riffle::cli {
namespace {

struct Arguments {
  Inputs inputs;
  Output output;
  PageFile page;
  std::vector<std::string> strategies{"mg-wfbp"};
  std::vector<std::string> events;
  std::string timeline;
  bool gantt = false;
  report::GanttStyle style;
  SimulateOptions options;
};

using Results = std::vector<std::pair<std::string, Simulation>>;

report::Table result_table(const Results& results) {
  report::Table table{{{"strategy", false},
                       {"step"},
                       {"compute"},
                       {"exposed"},
                       {"speed-up"},
                       {"efficiency"},
                       {"buckets"},
                       {"sent"},
                       {"sends"}},
                      {}};
  for (const auto& [spec, result] : results)
    table.rows.push_back(
        {spec, print(result.iteration), print(result.compute), print(result.exposed_communication),
         fmt::format("{:.2f}", result.speedup), fmt::format("{:.0f} %", result.efficiency * 100),
         std::to_string(result.buckets.size()),
         print(Bytes{static_cast<std::int64_t>(result.bytes_per_worker)}),
         fmt::format("{:.1f}", result.messages_per_worker)});
  return table;
}

// What workers noticed and did about it.
std::string replanned_lines(const Results& results) {
  std::string text;
  for (const auto& [spec, result] : results)
    for (const Replanned& each : result.replanned)
      text +=
          fmt::format("{}: {} after the change at {}, step {}: {}\n", spec,
                      print(each.at - each.happened), print(each.happened), each.step, each.what);
  return text;
}

std::string results_json(const Results& results) {
  if (results.size() == 1) return to_json(results.front().second);
  Json json{{"results", Json::array()}};
  for (const auto& [spec, result] : results) json["results"].push_back(json_of(result));
  return json.dump(1) + "\n";
}

// The timelines of all strategies in one file would be hard to tell apart.
void check(const Arguments& arguments, std::size_t strategies) {
  if (!arguments.timeline.empty() && strategies > 1)
    usage_error("--timeline: needs one strategy, not {}", strategies);
  if (arguments.options.replan && arguments.events.empty())
    usage_error("--replan: goes with --events, which say what changes");
  if (arguments.gantt && arguments.output.format != "table")
    usage_error("--gantt: goes with --format table only");
}

void run(Arguments& arguments) {
  const StrategyTable table = StrategyTable::builtin();
  const Trace trace = load_trace(arguments.inputs.trace);
  const Cluster cluster = load_cluster(arguments.inputs.cluster);
  const auto specs = expand_strategies(arguments.strategies, table);
  check(arguments, specs.size());
  arguments.page.check();
  for (const std::string& each : arguments.events)
    for (const Change& change : load_changes(each)) arguments.options.changes.push_back(change);
  Results results;
  std::string drawings;
  Json document = page_document("simulation", trace);
  add_cluster(document, cluster);
  {
    Progress progress;
    for (const std::string& spec : specs) {
      progress.show(fmt::format("simulating {} on {} workers", spec, cluster.size()));
      Timeline timeline;
      const bool wanted = arguments.gantt || !arguments.timeline.empty() || arguments.page.wanted();
      arguments.options.timeline = wanted ? &timeline : nullptr;
      const NamedStrategy strategy = table.make(spec);
      results.emplace_back(spec, simulate(trace, cluster, strategy, arguments.options));
      if (arguments.page.wanted()) {
        Json entry = page_result(spec, results.back().second);
        add_pictures(entry, trace, cluster, strategy, timeline);
        document["results"].push_back(std::move(entry));
      }
      if (!arguments.timeline.empty()) write_file(arguments.timeline, to_json(timeline));
      if (!arguments.gantt) continue;
      arguments.style.colour = arguments.output.colour();
      drawings += fmt::format("\n{}\n{}", spec, report::draw_gantt(timeline, arguments.style));
    }
  }
  arguments.page.write(document);
  const Output& output = arguments.output;
  if (output.json()) return output.write(results_json(results));
  if (output.csv()) return output.write(result_table(results));
  output.write(report::print_table(result_table(results), output.colour()) +
               replanned_lines(results) + drawings);
}

void add_drawing_options(CLI::App& command, Arguments& arguments) {
  command.add_option("--timeline", arguments.timeline,
                     "write what the workers did, for chrome://tracing or ui.perfetto.dev");
  command
      .add_option("--timeline-workers", arguments.options.timeline_workers,
                  "workers in it, the first ones")
      ->capture_default_str();
  command.add_flag("--gantt", arguments.gantt, "draw what the first workers do");
  command.add_option("--gantt-workers", arguments.style.workers, "how many of them")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command.add_option("--gantt-steps", arguments.style.steps, "steps to draw")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  arguments.style.width = terminal_width();
  command
      .add_option("--width", arguments.style.width,
                  "columns of the drawing (default: the terminal's, else 100)")
      ->check(CLI::Range(40, 1000));
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
  command->add_option("--seed", arguments->options.seed, "of jitter and stragglers")
      ->capture_default_str();
  command
      ->add_option("--steps", arguments->options.steps,
                   "steps to measure, rounded up to whole periods (default: until steady; 32 "
                   "for a strategy without a period)")
      ->check(CLI::Range(1, 1'000'000));
  command
      ->add_option("--warmup", arguments->options.warmup,
                   "steps before those (default: until pipelines are full)")
      ->check(CLI::Range(0, 1'000'000));
  command->add_option(
      "--events", arguments->events,
      "changes while it runs: at=2s,link=rack1,bandwidth=100Mbps | "
      "at=3s,link=worker2,cut | at=4s,link=worker2,repair | at=1s,link=rack0,load=300Mbps | "
      "at=5s,worker=3,slow=4, or a file with a change a line; repeatable");
  command->add_flag("--replan", arguments->options.replan,
                    "workers notice the changes and plan again, as sessions do that measure their "
                    "network");
  add_drawing_options(*command, *arguments);
  arguments->page.add_to(*command);
  arguments->output.add_to(*command);
  command->footer(
      "Example: riffle simulate --trace vgg16 --cluster flat:8,latency=1ms,bandwidth=1Gbps "
      "--strategy wfbp --strategy mg-wfbp --gantt");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace riffle::cli
