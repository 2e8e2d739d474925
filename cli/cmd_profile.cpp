#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/files.h"
#include "commands.h"
#include "common.h"
#include "process/guard.h"
#include "riffle/error.h"
#include "riffle/trace.h"

namespace riffle::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kNotFound = 127;  // as shells say it

struct Arguments {
  std::string output = "trace.json";
  int steps = 20;
  std::vector<std::string> command;
};

// In the inner process of a guard: becomes the command, with signals as a shell would leave them.
[[noreturn]] void become(const std::vector<std::string>& command) {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  fmt::print(stderr, "riffle: {}: {}\n", command.front(), std::strerror(errno));
  std::_Exit(kNotFound);
}

void run(const Arguments& arguments) {
  if (arguments.command.empty()) usage_error("command is required, after --");
  // Beside the output, so that what was there before stays until there is something new.
  const fs::path written =
      fs::absolute(fmt::format("{}.{}", arguments.output, static_cast<int>(::getpid())));
  if (!fs::is_directory(written.parent_path()))
    usage_error("--output {}: there is no folder {}", arguments.output,
                written.parent_path().string());
  ::setenv("RIFFLE_PROFILE", written.c_str(), 1);
  ::setenv("RIFFLE_PROFILE_STEPS", std::to_string(arguments.steps).c_str(), 1);
  const process::Guard guard = process::guard_process();
  if (!guard.outer) become(arguments.command);
  if (!fs::exists(written)) {
    if (guard.exit_code != 0) throw Exit{guard.exit_code};
    throw std::runtime_error(
        "no trace was written: the command must train with riffle.sync or riffle::attach, for "
        "more than two steps, and rank 0 must run on this host");
  }
  const Trace trace = trace_from_json(read_file(written), written.string());
  fs::rename(written, arguments.output);
  fmt::print(stderr, "riffle: {}\nriffle: wrote {}; next: riffle plan --trace {} --cluster ...\n",
             print(trace), arguments.output, arguments.output);
  if (guard.exit_code != 0) throw Exit{guard.exit_code};
}

}  // namespace

void add_profile(CLI::App& app, const std::vector<std::string>& words) {
  auto* command = app.add_subcommand(
      "profile", "record what a model's layers take, from your own training script");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("--output", arguments->output, "the trace file")->capture_default_str();
  command->add_option("--steps", arguments->steps, "steps to measure, after the first two")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("command", arguments->command, "what to run, after --");
  command->footer(
      "The command trains with riffle.sync or riffle::attach, alone or under any launcher; rank 0\n"
      "writes the trace as soon as it has measured so many steps, or at the end with those it "
      "has.\n"
      "The command goes on to its own end, and its exit code is this one's.\n\n"
      "Example: riffle profile --output mine.json -- torchrun --nproc-per-node 2 train.py\n"
      "         riffle plan --trace mine.json --cluster flat:16,latency=1ms,bandwidth=1Gbps");
  command->callback([arguments, words] {
    arguments->command.insert(arguments->command.end(), words.begin(), words.end());
    run(*arguments);
  });
}

}  // namespace riffle::cli
