#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "commands.h"
#include "common.h"
#include "page_file.h"
#include "report/chart.h"
#include "riffle/error.h"
#include "riffle/load.h"
#include "simulate/report.h"

namespace riffle::cli {
namespace {

struct Arguments {
  std::string trace = "resnet50";
  std::vector<std::string> clusters{"flat:16,latency=50us,bandwidth=10Gbps"};
  std::string workers;
  std::vector<std::string> strategies{"all"};
  std::string show = "speed-up";
  int width = 100;
  SimulateOptions options;
  Output output;
  PageFile page;
};

int worker_count(std::string_view text) {
  const std::int64_t count = parse_integer(text, "--workers");
  if (count < 1 || count > 1'000'000)
    usage_error("--workers: {} must be from 1 to 1000000", quote(text));
  return static_cast<int>(count);
}

// "4..2048": doubling from one to the other; "4,8,12": these.
std::vector<int> worker_counts(const std::string& text) {
  std::vector<int> counts;
  if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
    const int low = worker_count(std::string_view(text).substr(0, dots));
    const int high = worker_count(std::string_view(text).substr(dots + 2));
    if (low > high) usage_error("--workers: {} descends", quote(text));
    for (std::int64_t n = low; n < high; n *= 2) counts.push_back(static_cast<int>(n));
    counts.push_back(high);
    return counts;
  }
  for (const std::string_view part : split(text, ',')) counts.push_back(worker_count(part));
  std::ranges::sort(counts);
  return counts;
}

// One cluster takes every size of --workers; several have the sizes they have.
std::vector<Cluster> clusters(const Arguments& arguments) {
  std::vector<Cluster> list;
  const bool one = arguments.clusters.size() == 1;
  if (one) {
    const Cluster cluster = load_cluster(arguments.clusters.front());
    if (cluster.fit &&
        worker_counts(arguments.workers.empty() ? std::to_string(cluster.size())
                                                : arguments.workers) != std::vector{cluster.size()})
      usage_error("--cluster {}: a fit holds for its own {} workers; give one fit for each count",
                  print(cluster), cluster.size());
    for (const int n : worker_counts(arguments.workers.empty() ? "4..256" : arguments.workers))
      list.push_back(cluster.size() == n ? cluster : resized(cluster, n));
    return list;
  }
  for (const std::string& spec : arguments.clusters) list.push_back(load_cluster(spec));
  if (!arguments.workers.empty()) {
    const auto counts = worker_counts(arguments.workers);
    std::erase_if(list, [&](const Cluster& cluster) {
      return std::ranges::find(counts, cluster.size()) == counts.end();
    });
    if (list.empty()) usage_error("--workers: no --cluster has such a size");
  }
  std::ranges::stable_sort(list, {}, &Cluster::size);
  return list;
}

// A strategy that refuses the cluster (groups on a fit) has no value there.
struct Point {
  std::string spec;
  int workers = 0;
  bool refused = false;
  Simulation result{};
};

std::vector<Point> evaluate(const Arguments& arguments, const Trace& trace,
                            const std::vector<Cluster>& on) {
  const StrategyTable table = StrategyTable::builtin();
  const auto specs = expand_strategies(arguments.strategies, table);
  std::vector<Point> points;
  Progress progress;
  for (const std::string& spec : specs)
    for (const Cluster& cluster : on) {
      progress.show(fmt::format("sweep: {}/{} {} on {} workers", points.size() + 1,
                                specs.size() * on.size(), spec, cluster.size()));
      Point point{spec, cluster.size()};
      const NamedStrategy strategy = table.make(spec);
      try {
        point.result = simulate(trace, cluster, strategy, arguments.options);
      } catch (const UsageError&) {
        if (specs.size() == 1 && on.size() == 1) throw;
        point.refused = true;
      }
      points.push_back(std::move(point));
    }
  return points;
}

double shown_value(const Arguments& arguments, const Simulation& result) {
  if (arguments.show == "step") return result.iteration.count();
  return arguments.show == "efficiency" ? result.efficiency * 100 : result.speedup;
}

std::string shown_text(const Arguments& arguments, const Simulation& result) {
  if (arguments.show == "step") return print(result.iteration);
  return arguments.show == "efficiency" ? fmt::format("{:.1f} %", result.efficiency * 100)
                                        : fmt::format("{:.2f}", result.speedup);
}

report::Table wide_table(const Arguments& arguments, const std::vector<Point>& points,
                         std::size_t sizes) {
  report::Table table{{{arguments.show + " with workers:", false}}, {}};
  for (std::size_t i = 0; i < sizes; ++i)
    table.columns.push_back({std::to_string(points[i].workers)});
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i % sizes == 0) table.rows.push_back({points[i].spec});
    table.rows.back().push_back(points[i].refused ? "-" : shown_text(arguments, points[i].result));
  }
  return table;
}

report::Table long_table(const std::vector<Point>& points) {
  report::Table table{{{"strategy", false},
                       {"workers"},
                       {"iteration_seconds"},
                       {"compute_seconds"},
                       {"exposed_communication_seconds"},
                       {"speedup"},
                       {"efficiency"},
                       {"bytes_per_worker"},
                       {"messages_per_worker"},
                       {"buckets"}},
                      {}};
  for (const Point& point : points) {
    const Simulation& r = point.result;
    if (point.refused) continue;
    table.rows.push_back(
        {point.spec, std::to_string(r.workers), fmt::format("{}", r.iteration.count()),
         fmt::format("{}", r.compute.count()), fmt::format("{}", r.exposed_communication.count()),
         fmt::format("{}", r.speedup), fmt::format("{}", r.efficiency),
         fmt::format("{}", r.bytes_per_worker), fmt::format("{}", r.messages_per_worker),
         std::to_string(r.buckets.size())});
  }
  return table;
}

std::string points_json(const std::vector<Point>& points) {
  Json json{{"results", Json::array()}};
  for (const Point& point : points) {
    if (point.refused) continue;
    Json entry = json_of(point.result);
    entry["spec"] = point.spec;
    entry.erase("buckets");  // a scaling curve has no use for thousands of them
    entry["bucket_count"] = point.result.buckets.size();
    json["results"].push_back(std::move(entry));
  }
  return json.dump(1) + "\n";
}

report::Curves curves(const Arguments& arguments, const std::vector<Point>& points,
                      std::size_t sizes) {
  report::Curves drawn{
      "workers", arguments.show == "step" ? "seconds a step" : arguments.show, {}, {}};
  for (std::size_t i = 0; i < sizes; ++i) drawn.x.push_back(points[i].workers);
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i % sizes == 0) drawn.series.push_back({points[i].spec, {}});
    drawn.series.back().y.push_back(points[i].refused ? 0
                                                      : shown_value(arguments, points[i].result));
  }
  return drawn;
}

Json page_of(const Trace& trace, const std::vector<Cluster>& on, const std::vector<Point>& points) {
  Json document = page_document("sweep", trace);
  add_cluster(document, on.back());
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i % on.size() == 0)
      document["results"].push_back({{"contender", points[i].spec}, {"points", Json::array()}});
    if (points[i].refused) continue;
    Json entry = page_result(points[i].spec, points[i].result);
    entry.erase("contender");
    entry["workers"] = points[i].workers;
    document["results"].back()["points"].push_back(std::move(entry));
  }
  return document;
}

void run(const Arguments& arguments) {
  arguments.page.check();
  const auto on = clusters(arguments);
  const Trace trace = load_trace(arguments.trace);
  const auto points = evaluate(arguments, trace, on);
  if (arguments.page.wanted()) arguments.page.write(page_of(trace, on, points));
  const Output& output = arguments.output;
  if (output.json()) return output.write(points_json(points));
  if (output.csv()) return output.write(long_table(points));
  output.write(report::print_table(wide_table(arguments, points, on.size()), output.colour()) +
               "\n" + report::draw_chart(curves(arguments, points, on.size()), arguments.width));
}

}  // namespace

void add_sweep(CLI::App& app) {
  auto* command = app.add_subcommand("sweep", "scaling curves of strategies over worker counts");
  const auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("--trace", arguments->trace,
                   "a model: built-in name, or a trace file of any known format")
      ->capture_default_str();
  command
      ->add_option("--cluster", arguments->clusters,
                   "a cluster that is resized to each count; repeated: one for each count (fits)")
      ->capture_default_str();
  command->add_option("--workers", arguments->workers,
                      "4..2048 doubles, 4,8,12 lists (default: 4..256, or those of the clusters)");
  command
      ->add_option("--strategy", arguments->strategies, "NAME[:key=value,...], repeatable, or all")
      ->capture_default_str();
  command->add_option("--show", arguments->show, "what table and chart show")
      ->check(CLI::IsMember({"speed-up", "efficiency", "step"}))
      ->capture_default_str();
  command
      ->add_option("--steps", arguments->options.steps, "steps to measure (default: see simulate)")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--seed", arguments->options.seed, "of jitter and stragglers")
      ->capture_default_str();
  arguments->width = terminal_width();
  command
      ->add_option("--width", arguments->width,
                   "columns of the chart (default: the terminal's, else 100)")
      ->check(CLI::Range(40, 1000));
  arguments->page.add_to(*command);
  arguments->output.add_to(*command);
  command->footer(
      "Example: riffle sweep --workers 4..2048 --cluster flat:4,latency=50us,bandwidth=10Gbps "
      "--strategy wfbp --strategy mg-wfbp");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace riffle::cli
