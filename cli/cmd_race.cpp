#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "commands.h"
#include "common.h"
#include "lab/hosts.h"
#include "process/guard.h"
#include "race_screen.h"
#include "race_setting.h"
#include "race_tables.h"
#include "report/page.h"
#include "riffle/error.h"

namespace riffle::cli {
namespace {

namespace fs = std::filesystem;
using race::Race;
using race::Result;
using race::Setting;

constexpr const char* file_name = "race.json";

// Finished results of the same race that was interrupted.
std::vector<Result> finished_before(const Setting& setting) {
  const fs::path file = setting.folder / file_name;
  const Race before = race::race_from_json(read_file(file), file.string());
  const Race& now = setting.head;
  if (before.topology != now.topology || before.task != now.task || before.trace != now.trace ||
      before.target != now.target || before.seed != now.seed || before.events != now.events ||
      before.dilate != now.dilate || before.shrink != now.shrink)
    usage_error("--resume: {} is of another race: {}", file.string(), before.command);
  std::vector<Result> finished = before.results;
  std::erase_if(finished, [](const Result& result) { return !result.failed.empty(); });
  return finished;
}

void save(const Setting& setting, Race& race) {
  rank_results(race);
  write_file(setting.folder / file_name, to_json(race));
}

// Without the page's template a race is complete all the same.
std::string page_line(const Setting& setting, const Race& race) {
  if (!report::page_exists())
    return fmt::format(
        "riffle report {} draws it, once tools/build --target report_page has built "
        "the page",
        (setting.folder / file_name).string());
  const fs::path page = setting.folder / "report.html";
  report::write_page(page, parse_json(to_json(race), file_name));
  return fmt::format("{} shows it", page.string());
}

void show_end(RaceScreen& screen, std::size_t index, const Result& result) {
  RaceRow& row = screen.row(index);
  if (!result.failed.empty()) {
    row.state = "failed: " + result.failed;
    row.step = 0;
  }
  screen.show(index, true);
}

// One after the other; race.json is written after each.
Race run_all(const Setting& setting, const std::vector<race::Contender>& contenders,
             const std::vector<Result>& before) {
  Race race = setting.head;
  std::vector<std::string> names;
  for (const race::Contender& each : contenders) names.push_back(each.spec);
  RaceScreen screen(names);
  std::vector<std::pair<std::string, lab::Pace>> paced;
  for (std::size_t i = 0; i < contenders.size() && !race.interrupted; ++i) {
    const auto known = std::ranges::find(before, contenders[i].spec, &Result::contender);
    if (known != before.end()) {
      race.results.push_back(*known);
      screen.row(i).state = "finished before";
      screen.show(i, true);
      continue;
    }
    screen.row(i).state = contenders[i].peer ? "is prepared" : "starts";
    screen.show(i);
    race::Contest contest =
        run_contender(setting, contenders[i], [&](const race::Reports& reports, Step steps) {
          update(screen.row(i), reports, steps, setting.head.dilate);
          screen.show(i);
        });
    race.interrupted = contest.interrupted;
    race.results.push_back(std::move(contest.result));
    show_end(screen, i, race.results.back());
    if (contest.pace.is_of_processors()) paced.emplace_back(contenders[i].spec, contest.pace);
    save(setting, race);
  }
  save(setting, race);
  // With a task the processors are meant to be busy.
  if (setting.head.task.empty())
    for (const auto& [name, pace] : paced) {
      fmt::print(stderr, "{}: ", name);
      say_who_set(pace);
    }
  return race;
}

void print_result(const RaceArguments& arguments, const Setting& setting, const Race& race) {
  Output output;
  output.format = arguments.format;
  if (output.json()) return output.write(to_json(race));
  output.write(ranking_table(race));
  if (output.csv()) return;
  fmt::print("\n{}", race_notes(race));
  const bool drawn = std::ranges::any_of(
      race.results, [](const Result& result) { return !result.timeline_file.empty(); });
  fmt::print("{} has the figures{}\n", (setting.folder / file_name).string(),
             drawn ? "; *.perfetto.json beside it are timelines for ui.perfetto.dev" : "");
  fmt::print("{}\n", page_line(setting, race));
}

// Without a lab: what would be expected.
[[noreturn]] void only_predict(const RaceArguments& arguments, const Setting& setting,
                               const std::vector<race::Contender>& contenders,
                               const std::string& why) {
  fmt::print(stderr,
             "riffle: no lab here: {}\nriffle: predictions only; ./riffle train trains "
             "without a lab\n",
             why);
  Race race = setting.head;
  for (const race::Contender& each : contenders) {
    Result& result = race.results.emplace_back();
    result.contender = each.spec;
    result.failed = fmt::format("no lab here: {}", why);
    result.predicted = predict(each, setting.times, setting.head.topology, setting.events);
  }
  Output output;
  output.format = arguments.format;
  if (output.json())
    output.write(to_json(race));
  else
    output.write(prediction_table(race));
  throw Exit{1};
}

void run(const RaceArguments& arguments) {
  Setting setting = checked_setting(arguments);
  const StrategyTable table = StrategyTable::builtin();
  const auto contenders =
      race::parse_contenders(expand_strategies(arguments.strategies, table), table);
  const process::Guard guard = process::guard_process();
  if (guard.outer) {
    if (guard.killed)
      fmt::print(stderr, "riffle: the race was killed by signal {}; its workers were ended\n",
                 guard.exit_code - 128);
    throw Exit{guard.exit_code};
  }
  setting.lifeline = guard.lifeline.get();
  complete(setting, arguments);
  if (const std::string why = lab::missing(); !why.empty())
    only_predict(arguments, setting, contenders, why);
  fs::create_directories(setting.folder);
  const std::vector<Result> before =
      arguments.resume ? finished_before(setting) : std::vector<Result>{};
  lab::become_able();
  const Race race = run_all(setting, contenders, before);
  print_result(arguments, setting, race);
  std::fflush(stdout);
  constexpr int interrupted = 130;
  if (race.interrupted) throw Exit{interrupted};
  if (std::ranges::none_of(race.results, [](const Result& each) { return each.failed.empty(); }))
    throw Exit{1};
}

void add_training(CLI::App& command, RaceArguments& arguments) {
  command.add_option("--task", arguments.task,
                     "a task of riffle train that is judged by accuracy, computed for real "
                     "(default: digits)");
  command.add_option("--trace", arguments.trace,
                     "instead: a model whose compute is emulated; built-in name or trace file");
  command.add_option("--data", arguments.data, "of the task: real, synthetic, or a folder")
      ->capture_default_str();
  command
      .add_option(
          "--steps", arguments.steps,
          "steps that count, rounded up to whole periods of each strategy (default: 20 with "
          "--trace, 3 epochs with --task)")
      ->check(CLI::Range(1, 10'000'000));
  command.add_option("--epochs", arguments.epochs, "instead of --steps, with --task")
      ->check(CLI::Range(1e-6, 1e6));
  command
      .add_option("--target", arguments.target,
                  "with --task: the accuracy at which a contender has finished (default: 0.97)")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--seed", arguments.seed, "of weights, data, loss and jitter")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
}

void add_emulation(CLI::App& command, RaceArguments& arguments) {
  command
      .add_option("--cluster", arguments.cluster,
                  "flat:, racks:, sites: or a JSON file; every worker is a host")
      ->capture_default_str();
  command
      .add_option("--events", arguments.events,
                  "changes while each contender runs, as riffle lab knows them; repeatable")
      ->allow_extra_args(false);
  command.add_option("--dilate", arguments.dilate, "stretch time: auto, or so many times")
      ->capture_default_str();
  command
      .add_option("--shrink", arguments.shrink,
                  "with --trace: messages carry 1/S of their bytes, links 1/S of their rate; auto, "
                  "or S")
      ->capture_default_str();
}

}  // namespace

void add_race(CLI::App& app) {
  auto* command = app.add_subcommand(
      "race", "the same training under several strategies on one emulated cluster");
  const auto arguments = std::make_shared<RaceArguments>();
  add_emulation(*command, *arguments);
  command
      ->add_option("--strategy", arguments->strategies,
                   "contenders: NAME[:key=value,...] of riffle strategies, or of another library: "
                   "torch-ddp, torch-localsgd, decent-dp, torchft-diloco; repeatable, or all (of "
                   "ours)")
      ->capture_default_str();
  add_training(*command, *arguments);
  command->add_option("--output", arguments->folder, "a folder for race.json and timelines")
      ->capture_default_str();
  command->add_flag("--resume", arguments->resume,
                    "take what has finished from race.json there, run the rest");
  command->add_option("--format", arguments->format, "how the ranking is printed")
      ->check(CLI::IsMember({"table", "json", "csv"}))
      ->capture_default_str();
  command->footer(
      "Every contender trains the same model on the same data in the same emulated network, one\n"
      "after the other. One that fails is reported, and the race goes on. Ctrl-C keeps what is\n"
      "there. Needs root, or a user namespace where the kernel allows one; else only predicts.\n\n"
      "Example: riffle race\n"
      "         riffle race --trace resnet50 --cluster flat:8,latency=1ms,bandwidth=1Gbps "
      "--strategy wfbp --strategy mg-wfbp --strategy dasgd");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace riffle::cli
