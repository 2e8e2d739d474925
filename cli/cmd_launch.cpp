#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <thread>

#include "commands.h"
#include "common.h"
#include "engine/store/socket.h"
#include "process/guard.h"
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

using Environment = std::map<std::string, std::string>;

Environment inherited() {
  Environment result;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text = *one;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      result.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

// A port that is free now, for torch's own rendezvous in the workers.
int free_port() {
  return store::local_address(store::listen_on({"127.0.0.1", 0}).get()).port;
}

// What torchrun sets, and ours; the same for all ranks.
Environment of_job(const Arguments& arguments, const StoreAddress& store,
                   const std::string& token) {
  Environment result = inherited();
  const std::string workers = std::to_string(arguments.workers);
  const std::string job = fmt::format("riffle-{}", getpid());
  const int port = arguments.master_port > 0 ? arguments.master_port : free_port();
  const Environment ours = {{"WORLD_SIZE", workers},
                            {"LOCAL_WORLD_SIZE", workers},
                            {"GROUP_RANK", "0"},
                            {"GROUP_WORLD_SIZE", "1"},
                            {"ROLE_NAME", "default"},
                            {"ROLE_WORLD_SIZE", workers},
                            {"MASTER_ADDR", store.host},
                            {"MASTER_PORT", std::to_string(port)},
                            {"TORCHELASTIC_RUN_ID", job},
                            {"TORCHELASTIC_RESTART_COUNT", "0"},
                            {"TORCHELASTIC_MAX_RESTARTS", "0"},
                            {"RIFFLE_LAUNCHER", "riffle"},
                            {"RIFFLE_JOB", job},
                            {"RIFFLE_STORE", print(store)},
                            {"RIFFLE_TOKEN", token}};
  for (const auto& [name, value] : ours) result.insert_or_assign(name, value);
  // Workers share the cores; torch's default, all of them for each, is slower than one.
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  result.emplace("OMP_NUM_THREADS", std::to_string(std::max(1, cores / arguments.workers)));
  return result;
}

std::vector<std::string> of_rank(Environment environment, int rank) {
  for (const char* name : {"RANK", "LOCAL_RANK", "ROLE_RANK"})
    environment.insert_or_assign(name, std::to_string(rank));
  std::vector<std::string> result;
  for (const auto& [name, value] : environment) result.push_back(fmt::format("{}={}", name, value));
  return result;
}

void run(const Arguments& arguments) {
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

  const Environment environment = of_job(arguments, store.address(), serve.token);
  for (int rank = 0; rank < arguments.workers; ++rank)
    options.environments.push_back(of_rank(environment, rank));
  const process::Outcome outcome = process::supervise(options);
  if (!outcome.reason.empty()) fmt::print(stderr, "riffle: {}\n", outcome.reason);
  if (outcome.exit_code != 0) throw Exit{outcome.exit_code};
}

}  // namespace

void add_launch(CLI::App& app) {
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
  command->add_option("command", arguments->command, "what to run, after --")->required();
  command->footer(
      "Every worker gets torchrun's environment (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR,\n"
      "MASTER_PORT, ...) and the job's store (RIFFLE_STORE, RIFFLE_TOKEN). Output lines carry the\n"
      "rank. The first worker that fails ends all, and its exit code is the launcher's.\n\n"
      "Example: riffle launch -n 4 -- python3 train.py --epochs 3");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace riffle::cli
