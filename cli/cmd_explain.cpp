#include <fmt/format.h>

#include <algorithm>

#include "commands.h"
#include "common.h"
#include "explain_words.h"
#include "report/groups.h"
#include "riffle/load.h"
#include "riffle/verify.h"

namespace riffle::cli {
namespace {

using report::GroupPicture;
using report::GroupStyle;

struct Arguments {
  Inputs inputs;
  Output output;
  std::string strategy;
  Training training;
  int steps = 4;
  report::GroupStyle style;
};

// Steps that differ, from the first one on; runs of equal steps have one picture.
std::string pictures(const std::vector<Program>& programs, const World& world, int most,
                     const report::GroupStyle& style) {
  std::vector<report::GroupPicture> drawn;
  for (std::size_t first = 0; first < programs.size() && static_cast<int>(drawn.size()) < most;) {
    std::size_t end = first + 1;
    while (end < programs.size() && programs[end] == programs[first]) ++end;
    const std::string title = end - first == 1 ? fmt::format("step {}", first)
                                               : fmt::format("steps {} to {}", first, end - 1);
    drawn.push_back(report::draw_groups(title, programs[first], 0, world, style));
    first = end;
  }
  std::string text = report::beside(drawn, style);
  if (text.find('*') != std::string::npos)
    text += "A star: this one also meets the other stars, over several steps.\n";
  return text;
}

std::string bucket_lines(const Simulation& result) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, result.buckets.size()); ++i) {
    const SimulatedBucket& bucket = result.buckets[i];
    text += fmt::format("  {:>3}  {:>9}  {:>9} .. {:>9}  {} layers, {} .. {}\n", i,
                        print(bucket.bytes), print(bucket.start), print(bucket.end),
                        bucket.layers.size(), bucket.layers.back(), bucket.layers.front());
  }
  if (result.buckets.size() > kShown)
    text += fmt::format("  ... and {} more\n", result.buckets.size() - kShown);
  return text;
}

std::string repetition(const Traits& traits) {
  if (traits.period == 0) return "Groups are drawn anew, the same on all workers; no two alike.";
  if (traits.period == 1) return "Every step is like this.";
  return fmt::format("Then again from the start: the period is {} steps.", traits.period);
}

std::string heading(const std::string& text, bool colour) {
  return colour ? fmt::format("\x1b[1m{}\x1b[0m\n", text) : text + "\n";
}

// Steps worth a look: a period, as far as it is not too long.
std::vector<Program> first_programs(const NamedStrategy& strategy, const World& world,
                                    const BucketPlan& buckets, const Traits& traits) {
  const int count = std::min(traits.period == 0 ? 8 * traits.round : traits.period, 256);
  std::vector<Program> programs;
  programs.reserve(static_cast<std::size_t>(count));
  for (Step step = 0; step < count; ++step)
    programs.push_back(strategy->program(step, world, buckets));
  return programs;
}

std::string explain(const Arguments& arguments, report::GroupStyle style) {
  const StrategyTable table = StrategyTable::builtin();
  const NamedStrategy strategy = table.make(arguments.strategy);
  const StrategyInfo& info = table.info(strategy.name);
  const Trace trace = load_trace(arguments.inputs.trace);
  const World world(load_cluster(arguments.inputs.cluster));
  const CostModel cost(world.cluster);
  const BucketPlan buckets = strategy->buckets(trace, cost, world);
  const Traits traits = strategy->traits_with(world, buckets);
  const auto programs = first_programs(strategy, world, buckets, traits);
  const Verification proof = verify(strategy, world, trace);
  const Plan plan =
      make_plan(trace, world.cluster, table, {arguments.strategy}, {}, {}, arguments.training);
  const Candidate& candidate = plan.candidates.front();
  const Simulation& result = candidate.simulation;

  const bool colour = style.colour;
  std::string text = heading(fmt::format("{}: {}", strategy.spec, info.summary), colour);
  if (!info.page.idea.empty()) text += "\n" + paragraphs(info.page.idea, style.width) + "\n";
  if (!info.paper.empty()) text += fmt::format("Paper: {}\n", info.paper);
  text += fmt::format("On {}\nwith {}\n\n", print(world.cluster), print(trace));
  text +=
      heading("Who meets whom (a letter is a group, a row a rack or neighbours)", colour) + "\n";
  text += pictures(programs, world, arguments.steps, style) + repetition(traits) + "\n\n";
  std::vector<std::string> meanings{
      traits.exact ? "Training is synchronous SGD: the mathematics is unchanged."
                   : "Workers keep weights of their own and mix them.",
      agreement_sentence(proof), staleness_sentence(traits),
      fmt::format("A worker sends {} in {:.1f} messages per step.",
                  print(Bytes{static_cast<std::int64_t>(result.bytes_per_worker)}),
                  result.messages_per_worker),
      fmt::format("A step takes {}; {} of it is computing, {} waiting for the network.",
                  print(result.iteration), print(result.compute),
                  print(result.exposed_communication))};
  std::ranges::move(training_sentences(candidate, theory_of(strategy, world, trace, kMomentum),
                                       arguments.training),
                    std::back_inserter(meanings));
  if (proof.rounding) meanings.push_back(rounding_sentence(*proof.rounding));
  text += heading("What travels when", colour);
  for (const std::string& each : exchange_sentences(programs))
    text += wrapped(each, style.width, "- ");
  text += "\n" + heading("What that means", colour);
  for (const std::string& each : meanings) text += wrapped(each, style.width, "- ");
  text += "\n";
  if (!info.page.when.empty())
    text += heading("When to use it", colour) + paragraphs(info.page.when, style.width) + "\n";
  for (const Problem& problem : proof.problems) text += "PROBLEM: " + print(problem) + "\n";
  text += heading("The exchanges of the last simulated step, as worker 0 saw them", colour);
  return text + bucket_lines(result);
}

}  // namespace

void add_explain(CLI::App& app) {
  auto* command = app.add_subcommand("explain", "say in words and pictures what a strategy does");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("strategy", arguments->strategy, "NAME[:key=value,...]")->required();
  arguments->inputs.add_to(*command);
  add_training(*command, arguments->training);
  command->add_option("--steps", arguments->steps, "steps to draw")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--width", arguments->style.width, "columns of the drawing")
      ->check(CLI::Range(40, 1000))
      ->capture_default_str();
  command->add_option("--output", arguments->output.file, "write to a file");
  command->footer("Example: riffle explain sesgd --cluster flat:16,latency=1ms,bandwidth=1Gbps");
  command->callback([arguments] {
    report::GroupStyle style = arguments->style;
    style.colour = arguments->output.colour();
    arguments->output.write(explain(*arguments, style));
  });
}

}  // namespace riffle::cli
