#include <fmt/format.h>

#include "commands.h"
#include "common.h"
#include "engine/store/socket.h"
#include "process/guard.h"
#include "process/job_environment.h"
#include "process/supervise.h"
#include "riffle/error.h"
#include "riffle/launch_environment.h"

namespace riffle::cli {
namespace {

constexpr int max_workers = 1024;

struct Arguments {
  int workers = 0;
  int master_port = 0;
  std::string grace = "5s";
  std::vector<std::string> command;
};

// A port that is free now, for torch's own rendezvous in the workers.
int free_port() {
  return store::local_address(store::listen_on({"127.0.0.1", 0}).get()).port;
}

void run(const Arguments& arguments) {
  if (arguments.command.empty()) usage_error("command is required, after --");
  process::SuperviseOptions options;
  options.command = arguments.command;
  const Seconds grace = parse_seconds(arguments.grace, "--grace");
  options.grace = std::chrono::ceil<std::chrono::milliseconds>(grace);

  const process::Guard guard = process::guard_process();
  if (guard.outer) {
    if (guard.killed)
      fmt::print(stderr, "riffle: the launcher was killed by signal {}; its workers were ended\n",
                 guard.exit_code - 128);
    throw Exit{guard.exit_code};
  }
  options.lifeline = guard.lifeline.get();

  StoreServerOptions serve;
  serve.token = process_environment()("RIFFLE_TOKEN").value_or("");
  if (serve.token.empty()) serve.token = make_token();
  serve.max_clients = 64 + 8 * arguments.workers;
  const StoreServer store(serve);

  const process::JobShape shape{
      .workers = arguments.workers,
      .per_host = arguments.workers,
      .master = store.address().host,
      .master_port = arguments.master_port > 0 ? arguments.master_port : free_port()};
  process::Environment environment = job_environment(shape);
  environment.insert_or_assign("RIFFLE_LAUNCHER", "riffle");
  environment.insert_or_assign("RIFFLE_STORE", print(store.address()));
  environment.insert_or_assign("RIFFLE_TOKEN", serve.token);
  for (int rank = 0; rank < arguments.workers; ++rank)
    options.environments.push_back(rank_environment(environment, shape, rank));
  const process::Outcome outcome = process::supervise(options);
  if (!outcome.reason.empty()) fmt::print(stderr, "riffle: {}\n", outcome.reason);
  if (outcome.exit_code != 0) throw Exit{outcome.exit_code};
}

}  // namespace

void add_launch(CLI::App& app, const std::vector<std::string>& words) {
  auto* command = app.add_subcommand("launch", "run a command as N workers on this host");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("-n,--workers", arguments->workers, "how many workers")
      ->required()
      ->check(CLI::Range(1, max_workers));
  command
      ->add_option("--master-port", arguments->master_port,
                   "MASTER_PORT of the workers (default: a free port)")
      ->check(CLI::Range(1, 65535));
  command
      ->add_option("--grace", arguments->grace,
                   "time from asking workers to end (SIGTERM) to killing them")
      ->capture_default_str();
  command->add_option("command", arguments->command, "what to run, after --");
  command->footer(
      "Every worker gets torchrun's environment (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR,\n"
      "MASTER_PORT, ...) and the job's store (RIFFLE_STORE, RIFFLE_TOKEN). Output lines carry the\n"
      "rank. The first worker that fails ends all, and its exit code is the launcher's.\n\n"
      "Example: riffle launch -n 4 -- python3 train.py --epochs 3");
  command->callback([arguments, words] {
    arguments->command.insert(arguments->command.end(), words.begin(), words.end());
    run(*arguments);
  });
}

}  // namespace riffle::cli
