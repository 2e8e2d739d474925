// The command `riffle`. Results on standard output, log and progress on standard error; exit 2 for
// bad usage, 1 for failure.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <string_view>

#include "base/text.h"
#include "commands.h"
#include "common.h"
#include "riffle/error.h"

namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

// What stands after "--" of a verb that runs a command; taken away from what CLI11 reads, which
// would take a word like [a,b] apart.
std::vector<std::string> take_command(int& argc, char** argv) {
  constexpr std::array<std::string_view, 3> verbs{"lab", "launch", "profile"};
  if (argc < 2 || std::ranges::find(verbs, argv[1]) == verbs.end()) return {};
  char** const end = argv + argc;
  char** const mark = std::find(argv, end, std::string_view("--"));
  if (mark == end) return {};
  argc = static_cast<int>(mark - argv);
  return {mark + 1, end};
}

void add_verbs(CLI::App& app, const std::vector<std::string>& command) {
  using namespace riffle::cli;
  add_race(app);
  add_plan(app);
  add_simulate(app);
  add_sweep(app);
  add_converge(app);
  add_explain(app);
  add_verify(app);
  add_strategies(app);
  add_compare(app);
  add_bench(app);
  add_trace(app);
  add_profile(app, command);
  add_launch(app, command);
  add_lab(app, command);
  add_probe(app);
  add_report(app);
}

// CLI11 would call a misspelled verb an unexpected argument; a wrong name is answered with the
// right ones.
void check_verb(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> known;
  for (const CLI::App* verb : app.get_subcommands({})) known.push_back(verb->get_name());
  if (std::ranges::find(known, argv[1]) == known.end())
    throw riffle::UsageError(riffle::unknown_name("verb", argv[1], known));
}

int complain(const std::string& message, int code) {
  fmt::print(stderr, "riffle: {}\n", message);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Riffle trains one model on many workers and keeps it fast on slow networks.\n"
      "It plans first: which synchronization strategy, for your model on your network, and why.\n"};
  app.name("riffle");
  app.set_version_flag("--version", RIFFLE_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Example: riffle plan --trace resnet50 --cluster flat:16,latency=1ms,bandwidth=1Gbps\n"
      "In the repository also: ./riffle train, data, reproduce (Python) and ./riffle test");
  try {
    add_verbs(app, take_command(argc, argv));
    check_verb(app, argc, argv);
    app.parse(argc, argv);
    if (std::fflush(stdout) != 0) return complain("cannot write to standard output", kFailure);
    return 0;
  } catch (const riffle::cli::Exit& exit) {
    return exit.code;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return complain(fmt::format("{} (see riffle --help)", error.what()), kUsage);
  } catch (const riffle::UsageError& error) {
    return complain(error.what(), kUsage);
  } catch (const std::exception& error) {
    return complain(error.what(), kFailure);
  }
}
