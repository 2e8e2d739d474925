#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "commands.h"
#include "common.h"
#include "converge_page.h"
#include "page_file.h"
#include "report/chart.h"
#include "riffle/converge.h"
#include "riffle/error.h"
#include "riffle/load.h"
#include "riffle/simulate.h"
#include "strategies/example.h"

namespace riffle::cli {
namespace {

struct Arguments {
  Output output;
  std::vector<std::string> strategies{"bsp", "sesgd", "dasgd"};
  int workers = 16;
  std::string cluster;
  std::string trace;
  double epochs = 0;
  std::string show = "loss";
  int width = 100;
  std::string batches;
  PageFile page;
  ProblemOptions problem;
  ConvergeOptions options;
};

// Where a cluster is given, steps take the time that the timing simulator says: of the given model,
// else of the problem's own layers, whose times are made up and so tell nothing.
struct Setting {
  World world;
  std::unique_ptr<LearningProblem> problem;
  Trace trace;
  bool timed = false;
};

Setting make_setting(const Arguments& arguments) {
  if (arguments.trace.empty() != arguments.cluster.empty())
    usage_error("--trace and --cluster: seconds need both, a model and a cluster");
  const bool timed = !arguments.cluster.empty();
  World world(timed ? load_cluster(arguments.cluster) : example_racks(arguments.workers));
  auto problem = make_problem(arguments.problem, world.size());
  Trace trace = timed ? load_trace(arguments.trace) : problem->trace();
  return {std::move(world), std::move(problem), std::move(trace), timed};
}

// What can be trained there. Asked of all before the first is trained for long; of `all` those are
// left out that cannot.
std::vector<std::string> trainable(const Arguments& arguments, const Setting& setting,
                                   const StrategyTable& table) {
  const bool all = std::ranges::find(arguments.strategies, "all") != arguments.strategies.end();
  if (!all && arguments.strategies.size() == 1) return arguments.strategies;  // it is the first
  ConvergeOptions options = arguments.options;
  options.steps = 1;
  options.test = options.thorough = false;
  std::vector<std::string> specs;
  for (const std::string& spec : expand_strategies(arguments.strategies, table)) try {
      static_cast<void>(
          converge(*setting.problem, setting.world, setting.trace, table.make(spec), options));
      specs.push_back(spec);
    } catch (const UsageError& error) {
      if (!all) throw;
      fmt::print(stderr, "riffle: left out: {}\n", error.what());
    }
  if (specs.empty()) usage_error("--strategy: none of them can be trained here");
  return specs;
}

std::vector<Convergence> train(const Arguments& arguments, const Setting& setting) {
  const StrategyTable table = StrategyTable::builtin();
  const std::vector<std::string> specs = trainable(arguments, setting, table);
  const bool theory =
      arguments.options.optimizer == "sgd" && (arguments.output.json() || arguments.page.wanted());
  std::vector<Convergence> results;
  Progress progress;
  ConvergeOptions options = arguments.options;
  for (const std::string& spec : specs) {
    options.progress = [&](Step done) {
      progress.show(fmt::format("converge: {} on {} workers, step {} of {}", spec,
                                setting.world.size(), done, options.steps));
    };
    const NamedStrategy strategy = table.make(spec);
    results.push_back(converge(*setting.problem, setting.world, setting.trace, strategy, options));
    if (theory)
      results.back().theory = theory_of(strategy, setting.world, setting.trace, options.momentum);
    if (setting.timed)
      results.back().seconds_per_step =
          simulate(setting.trace, setting.world.cluster, strategy).iteration;
  }
  return results;
}

// Losses of training that has not broken have few digits.
std::string print_loss(double loss) {
  return std::abs(loss) < 1e6 ? fmt::format("{:.4f}", loss) : fmt::format("{:.3e}", loss);
}

// A line for each strategy.
report::Table summary(const std::vector<Convergence>& results) {
  report::Table table{
      {{"strategy", false}, {"loss"}, {"accuracy"}, {"consensus distance"}, {"steps"}}, {}};
  const bool timed = !results.empty() && results.front().seconds_per_step;
  if (timed)
    for (const char* name : {"a step", "in all"}) table.columns.push_back({name});
  for (const Convergence& each : results) {
    const bool empty = each.steps.empty();
    std::vector<std::string> row{
        each.strategy, each.diverged ? "diverged" : print_loss(each.loss.back()),
        each.accuracy ? fmt::format("{:.2f} %", 100 * *each.accuracy) : "-",
        empty ? "-" : fmt::format("{:.4f}", each.consensus_distance.back()),
        std::to_string(empty ? 0 : each.steps.back())};
    if (timed) {
      row.push_back(print(*each.seconds_per_step));
      row.push_back(
          print(*each.seconds_per_step * static_cast<double>(empty ? 0 : each.steps.back())));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// A line for each point of each curve.
report::Table points(const std::vector<Convergence>& results) {
  report::Table table{{{"strategy", false}, {"step"}, {"loss"}, {"consensus_distance"}}, {}};
  const bool timed = !results.empty() && results.front().seconds_per_step;
  if (timed) table.columns.push_back({"seconds"});
  for (const Convergence& each : results)
    for (std::size_t i = 0; i < each.steps.size(); ++i) {
      table.rows.push_back({each.strategy, std::to_string(each.steps[i]),
                            fmt::format("{}", each.loss[i]),
                            fmt::format("{}", each.consensus_distance[i])});
      if (timed)
        table.rows.back().push_back(
            fmt::format("{}", static_cast<double>(each.steps[i]) * each.seconds_per_step->count()));
    }
  return table;
}

// Curves over steps share their points; over seconds each has its own, so all are drawn at those of
// any. Workers that are equal but for the rounding of their mean have no point.
report::Curves curves(const std::vector<Convergence>& results, const std::string& show) {
  const bool timed = results.front().seconds_per_step.has_value();
  const auto at = [&](const Convergence& of, std::size_t i) {
    return static_cast<double>(of.steps[i]) * (timed ? of.seconds_per_step->count() : 1);
  };
  report::Curves drawn{timed ? "seconds" : "steps", show, {}, {}};
  for (const Convergence& each : results)
    for (std::size_t i = 0; i < each.steps.size(); ++i) drawn.x.push_back(at(each, i));
  std::ranges::sort(drawn.x);
  drawn.x.erase(std::ranges::unique(drawn.x).begin(), drawn.x.end());
  for (const Convergence& each : results) {
    const auto& values = show == "loss" ? each.loss : each.consensus_distance;
    auto& series = drawn.series.emplace_back(each.strategy, std::vector<double>{});
    std::size_t next = 0;
    for (const double x : drawn.x) {
      const bool own = next < each.steps.size() && at(each, next) == x;
      const double value = own ? values[next++] : 0;
      series.y.push_back(value > 1e-12 ? value : 0);
    }
  }
  return drawn;
}

void write_page(const PageFile& page, const Setting& setting,
                const std::vector<Convergence>& results) {
  if (!page.wanted()) return;
  Json document = page_document("convergence", setting.trace);
  document["task"] = setting.problem->describe();
  document["workers"] = setting.world.size();
  if (setting.timed)
    add_cluster(document, setting.world.cluster);
  else
    document.erase("trace");  // the problem's own
  const Json trained = Json::parse(to_json(results));
  for (const Json& each : trained["results"]) document["results"].push_back(page_result(each));
  page.write(document);
}

void run(Arguments& arguments) {
  arguments.page.check();
  const Setting setting = make_setting(arguments);
  if (!std::isfinite(arguments.epochs)) usage_error("--epochs: {} is no number", arguments.epochs);
  if (arguments.epochs > 0) {
    if (setting.problem->epoch() == 0) usage_error("--epochs: the quadratic has none");
    arguments.options.steps = std::max<Step>(
        1, static_cast<Step>(arguments.epochs * static_cast<double>(setting.problem->epoch())));
  }
  if (!arguments.batches.empty() && setting.problem->epoch() == 0)
    usage_error("--save-batches: the quadratic has none");
  const std::vector<Convergence> results = train(arguments, setting);
  if (!arguments.batches.empty())
    write_file(arguments.batches,
               batches_json(*setting.problem, setting.world.size(), arguments.options.steps));
  write_page(arguments.page, setting, results);
  const Output& output = arguments.output;
  if (output.json()) return output.write(to_json(results));
  if (output.csv()) return output.write(points(results));
  output.write(
      fmt::format("{}, {} workers\n\n", setting.problem->describe(), setting.world.size()) +
      report::print_table(summary(results), output.colour()) + "\n" +
      report::draw_chart(curves(results, arguments.show), arguments.width));
}

void add_problem_options(CLI::App& command, ProblemOptions& problem) {
  command.add_option("--problem", problem.problem, "quadratic, logistic or network")
      ->capture_default_str();
  command
      .add_option("--data", problem.data,
                  "auto (digits where `riffle data` has fetched them, else synthetic), digits, "
                  "synthetic, or a folder with MNIST's idx files")
      ->capture_default_str();
  command.add_option("--layers", problem.layers,
                     "sizes of a network, as 784-64-10; of the quadratic its dimension");
  command.add_option("--batch", problem.batch, "samples of a worker in a step")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command.add_option("--split", problem.split, "how data are divided: iid, or dirichlet:A")
      ->capture_default_str();
  command.add_option("--noise", problem.noise, "of the quadratic's gradients")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  command.add_option("--condition", problem.condition, "of the quadratic's curvatures")
      ->check(CLI::Range(1.0, 1e9))
      ->capture_default_str();
  command.add_option("--seed", problem.seed, "of data, split, batches and first weights")
      ->capture_default_str();
}

void add_training_options(CLI::App& command, Arguments& arguments) {
  ConvergeOptions& options = arguments.options;
  command.add_option("--steps", options.steps, "steps to train")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  command.add_option("--epochs", arguments.epochs, "passes through the data, instead of --steps")
      ->check(CLI::Range(0.0, 1e6));
  command.add_option("--optimizer", options.optimizer, "sgd, adam or adamw")->capture_default_str();
  command.add_option("--learning-rate", options.learning_rate, "constant")->capture_default_str();
  command.add_option("--momentum", options.momentum, "of sgd")->capture_default_str();
  command.add_option("--weight-decay", options.weight_decay, "as torch.optim has it")
      ->capture_default_str();
  command
      .add_option("--every", options.every,
                  "steps between two points of the curves (default: about 100 points)")
      ->check(CLI::Range(1, 100'000'000));
  command.add_flag("--thorough", options.thorough,
                   "at every point also the squared gradient of the whole objective at the mean of "
                   "the workers (JSON)");
  command.add_flag("--test", options.test,
                   "at every point also loss and accuracy of the mean of the workers on samples "
                   "never trained on");
  command.add_option("--save-batches", arguments.batches,
                     "write the first weights and the samples of every batch as JSON, to repeat "
                     "the run elsewhere");
}

}  // namespace

void add_converge(CLI::App& app) {
  auto* command = app.add_subcommand(
      "converge", "train a small problem on virtual workers: what a strategy does to accuracy");
  const auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("--strategy", arguments->strategies,
                   "NAME[:key=value,...], repeatable, or all (see riffle strategies)")
      ->capture_default_str();
  command->add_option("--workers", arguments->workers, "in racks of about sqrt(N)")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--cluster", arguments->cluster,
                      "with --trace: workers, racks and the time of a step, instead of --workers");
  command->add_option("--trace", arguments->trace,
                      "with --cluster: the model whose buckets are exchanged and timed");
  add_problem_options(*command, arguments->problem);
  add_training_options(*command, *arguments);
  command->add_option("--show", arguments->show, "what the chart shows")
      ->check(CLI::IsMember({"loss", "consensus-distance"}))
      ->capture_default_str();
  arguments->width = terminal_width();
  command
      ->add_option("--width", arguments->width,
                   "columns of the chart (default: the terminal's, else 100)")
      ->check(CLI::Range(40, 1000));
  arguments->page.add_to(*command);
  arguments->output.add_to(*command);
  command->footer(
      "Example: riffle converge --workers 16 --strategy bsp --strategy sesgd --strategy "
      "dasgd:tau=4,delay=4 --split dirichlet:0.3");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace riffle::cli
