#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "commands.h"
#include "common.h"
#include "engine/store/socket.h"
#include "lab/check.h"
#include "lab/environment.h"
#include "lab/lab.h"
#include "lab/limits.h"
#include "lab/pace.h"
#include "lab_tables.h"
#include "process/guard.h"
#include "process/supervise.h"
#include "riffle/error.h"
#include "riffle/launch_environment.h"

namespace riffle::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int most_workers = 1024;

struct Arguments {
  Output output;
  std::string cluster;
  double dilate = 1;
  double shrink = 1;
  std::vector<std::string> events;
  int ranks_per_host = 1;
  bool stats = false;
  bool check = false;
  bool force = false;
  std::uint64_t seed = 1;
  std::string grace = "5s";
  std::vector<std::string> command;
};

lab::LabOptions lab_options(const Arguments& arguments) {
  lab::LabOptions options{.cluster = load_cluster(arguments.cluster),
                          .dilate = arguments.dilate,
                          .shrink = arguments.shrink,
                          .seed = arguments.seed};
  for (const std::string& each : arguments.events)
    for (const Change& change : load_changes(each)) {
      links_of(change, options.cluster);
      options.events.push_back(change);
    }
  const lab::Machine machine{static_cast<int>(std::thread::hardware_concurrency())};
  if (!arguments.force)
    lab::refuse_what_cannot_be(options.cluster, options.dilate, options.shrink, machine,
                               options.events);
  if (options.cluster.size() * arguments.ranks_per_host > most_workers)
    usage_error("{} hosts of {} ranks are more than {} workers", options.cluster.size(),
                arguments.ranks_per_host, most_workers);
  return options;
}

// What --shrink means for figures: they are those of the true cluster only with messages that
// shrink too.
void say_what_is_shrunk(double shrink) {
  if (shrink == 1) return;
  fmt::print(stderr,
             "riffle: links have 1/{0:g} of their rates, latencies are true; riffle-worker and "
             "riffle.emulated send 1/{0:g} of the bytes in the buckets of the true model, so every "
             "size threshold shrinks along (ddp's 25 MiB are {1} here)\n",
             shrink, print(Bytes{std::llround(static_cast<double>(mebibytes(25).count) / shrink)}));
}

void run_command(const Arguments& arguments, const lab::LabOptions& given, lab::Lab& lab,
                 int lifeline) {
  const process::JobShape shape = lab::shape_of(lab, arguments.ranks_per_host);
  lab.start_clock();
  process::Environment environment = lab::worker_environment(given, lab, shape);
  environment.insert_or_assign("RIFFLE_TOKEN", make_token());
  process::SuperviseOptions options;
  options.command = arguments.command;
  options.grace =
      std::chrono::ceil<std::chrono::milliseconds>(parse_seconds(arguments.grace, "--grace"));
  options.lifeline = lifeline;
  options.prepare = [&](int rank) { lab.hosts().enter(rank / shape.per_host); };
  options.watch = [&] { return lab.network().running() ? "" : "the lab's switch has ended"; };
  for (int rank = 0; rank < shape.workers; ++rank)
    options.environments.push_back(rank_environment(environment, shape, rank));
  const lab::ProcessorTime before = lab::ProcessorTime::now();
  const auto begin = Clock::now();
  const process::Outcome outcome = process::supervise(options);
  const Seconds took = Clock::now() - begin;
  const lab::Pace pace = pace_since(before, lab);
  say_who_set(pace);
  if (arguments.stats && arguments.output.json())
    arguments.output.write(
        Json{{"seconds", took.count()}, {"pace", pace.json()}, {"links", stats_json(lab, took)}}
            .dump(1) +
        "\n");
  else if (arguments.stats)
    arguments.output.write(stats_table(lab, took));
  if (!outcome.reason.empty()) fmt::print(stderr, "riffle: {}\n", outcome.reason);
  if (outcome.exit_code != 0) throw Exit{outcome.exit_code};
}

void run_check(const Arguments& arguments, lab::Lab& lab) {
  lab.start_clock();
  fmt::print(stderr, "riffle: moving a packet takes {}, which is taken off every latency\n",
             print(Seconds(static_cast<double>(lab.bias()) * 1e-9)));
  const lab::ProcessorTime before = lab::ProcessorTime::now();
  const auto results = lab::check(lab, {});
  const lab::Pace pace = pace_since(before, lab);
  say_who_set(pace);
  if (arguments.output.json())
    return arguments.output.write(
        Json{{"dilate", arguments.dilate}, {"pace", pace.json()}, {"results", check_json(results)}}
            .dump(1) +
        "\n");
  arguments.output.write(check_table(results));
}

void run(const Arguments& arguments) {
  if (arguments.check == !arguments.command.empty())
    usage_error("lab needs --check, or a command after --; one of them");
  const lab::LabOptions options = lab_options(arguments);
  if (arguments.check && options.cluster.size() < 2)
    usage_error("--check measures between hosts, and there is one");
  if (const std::string why = lab::missing(); !why.empty())
    throw std::runtime_error(fmt::format("no lab here: {}", why));
  const process::Guard guard = process::guard_process();
  if (guard.outer) {
    if (guard.killed)
      fmt::print(stderr, "riffle: the lab was killed by signal {}; its workers were ended\n",
                 guard.exit_code - 128);
    throw Exit{guard.exit_code};
  }
  say_what_is_shrunk(arguments.shrink);
  constexpr int files_each = 2;  // a host's namespace and device, a worker's two streams
  store::raise_open_files(files_each * options.cluster.size() * (1 + arguments.ranks_per_host));
  lab::become_able();
  lab::Lab lab(options);
  if (!arguments.check) return run_command(arguments, options, lab, guard.lifeline.get());
  process::end_with_outer(guard);
  run_check(arguments, lab);
}

}  // namespace

void add_lab(CLI::App& app, const std::vector<std::string>& words) {
  auto* command = app.add_subcommand("lab", "run a command on an emulated cluster");
  const auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("cluster", arguments->cluster,
                   "a cluster: flat:, racks:, sites: or a JSON file; every worker is a host")
      ->required();
  command->add_option("--dilate", arguments->dilate, "stretch time so many times")
      ->check(CLI::Range(1.0, lab::most_dilation));
  command
      ->add_option("--shrink", arguments->shrink,
                   "messages carry 1/S of their bytes, links 1/S of their rate")
      ->check(CLI::Range(1.0, 1'000'000.0));
  command
      ->add_option("--events", arguments->events,
                   "changes while it runs: at=2s,link=rack1,bandwidth=100Mbps | "
                   "at=3s,link=worker2,cut | at=4s,link=worker2,repair | "
                   "at=0s,link=worker*,loss=1%,jitter=1ms | at=1s,link=rack0,load=300Mbps | "
                   "at=5s,worker=3,slow=4 (emulated compute), or a file with a change a line; "
                   "repeatable")
      ->allow_extra_args(false);
  auto* check = command->add_flag(
      "--check", arguments->check,
      "measure ping, throughput, shared links and all-to-all against the cluster");
  command->add_option("--ranks-per-host", arguments->ranks_per_host, "workers on each host")
      ->check(CLI::Range(1, most_workers))
      ->capture_default_str()
      ->excludes(check);
  command->add_flag("--stats", arguments->stats, "what each link carried, at the end")
      ->excludes(check);
  command->add_flag("--force", arguments->force,
                    "run also what this machine cannot emulate honestly");
  command->add_option("--seed", arguments->seed, "of loss, jitter and load")->capture_default_str();
  command
      ->add_option("--grace", arguments->grace,
                   "time from asking workers to end (SIGTERM) to killing them")
      ->capture_default_str()
      ->excludes(check);
  command->add_option("command", arguments->command, "what to run on every host, after --");
  arguments->output.add_to(*command);
  command->footer(
      "Every worker runs in a network of its own (198.18.0.1, .2, ...; no way out) and gets\n"
      "torchrun's environment. Output lines carry the rank; the first worker that fails ends all.\n"
      "Needs root, or a user namespace where the kernel allows one.\n\n"
      "Example: riffle lab flat:4,latency=2ms,bandwidth=200Mbps -- python3 train.py\n"
      "         riffle lab racks:2x4,inner=1ms/100Mbps,outer=4ms/50Mbps --check");
  command->callback([arguments, words] {
    arguments->command.insert(arguments->command.end(), words.begin(), words.end());
    run(*arguments);
  });
}

}  // namespace riffle::cli
