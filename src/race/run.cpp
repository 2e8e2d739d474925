#include "race/run.h"

#include <fmt/format.h>

#include <chrono>

#include "lab/environment.h"
#include "riffle/launch_environment.h"

namespace riffle::race {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::milliseconds milliseconds_of(Seconds time) {
  return std::chrono::ceil<std::chrono::milliseconds>(time);
}

constexpr std::chrono::milliseconds grace{2000};

}  // namespace

Run run_in_lab(const RunOptions& options) {
  lab::Lab lab(options.lab);
  Run run{Reports(options.folder, lab.hosts().size()), {}, {}};
  const process::JobShape shape = lab::shape_of(lab);
  lab.start_clock();
  process::Environment environment = lab::worker_environment(options.lab, lab, shape);
  environment.insert_or_assign("RIFFLE_TOKEN", make_token());
  environment.insert_or_assign("RIFFLE_RACE", options.order.string());

  process::SuperviseOptions supervised;
  supervised.command = options.command;
  supervised.grace = grace;
  supervised.lifeline = options.lifeline;
  supervised.prepare = [&](int rank) { lab.hosts().enter(rank); };
  supervised.line = [](int, bool, std::string_view) {};  // the last of them are in the outcome
  for (int rank = 0; rank < shape.workers; ++rank)
    supervised.environments.push_back(process::rank_environment(environment, shape, rank));
  auto last_news = Clock::now();
  supervised.watch = [&]() -> std::string {
    if (!lab.network().running()) return "the lab's switch has ended";
    try {
      if (run.reports.read()) last_news = Clock::now();
    } catch (const std::exception& error) {
      return error.what();
    }
    options.show(run.reports);
    if (Clock::now() - last_news < options.patience) return "";
    return fmt::format("nothing was reported for {}", print(options.patience));
  };

  const lab::ProcessorTime before = lab::ProcessorTime::now();
  run.outcome = process::supervise(supervised);
  run.pace = lab::pace_since(before, lab);
  try {
    run.reports.read();
  } catch (const std::exception& error) {
    if (run.outcome.line.empty()) run.outcome.line = error.what();
  }
  options.show(run.reports);
  return run;
}

Answer ask(const std::vector<std::string>& command, Seconds patience, int lifeline,
           const std::function<void(const std::string&)>& said) {
  Answer answer;
  process::SuperviseOptions options;
  options.command = command;
  options.grace = grace;
  options.lifeline = lifeline;
  options.environments = {process::variables_of(process::own_environment())};
  options.line = [&](int, bool error, std::string_view line) {
    if (error && said) said(std::string(line));
    if (!error) answer.text += fmt::format("{}\n", line);
  };
  const auto deadline = Clock::now() + milliseconds_of(patience);
  options.watch = [&]() -> std::string {
    return Clock::now() < deadline ? "" : fmt::format("not done in {}", print(patience));
  };
  std::string last;
  options.line = [&, each = options.line](int rank, bool error, std::string_view line) {
    each(rank, error, line);
    if (error) last = line;
  };
  answer.outcome = process::supervise(options);
  if (answer.outcome.exit_code != 0 && !answer.outcome.interrupted && !last.empty())
    answer.outcome.line = last;
  return answer;
}

}  // namespace riffle::race
