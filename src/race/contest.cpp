#include "race/contest.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "model/slowed_down.h"
#include "race/joined.h"
#include "race/measured.h"
#include "report/step_timeline.h"

namespace riffle::race {
namespace {

namespace fs = std::filesystem;

Step whole(Step steps, Step period) {
  return (steps + period - 1) / period * period;
}

fs::path lines_of(const Setting& setting, const Contender& contender) {
  return setting.folder / "ranks" / contender.file_name();
}

// How a contender is started: its command, and what to tell people.
struct Start {
  std::vector<std::string> command{};
  std::string how{};
  int period = 0;  // of a peer
  std::string failed{};
  bool interrupted = false;
};

// A peer lives in an environment of its own, made when it is wanted.
Start prepare_peer(const Setting& setting, const Contender& contender) {
  constexpr Seconds patience{600};  // packages are fetched
  const Answer answer = ask({setting.python, "-m", "riffle.peers", "--prepare", contender.spec,
                             "--workers", std::to_string(setting.head.topology.size())},
                            patience, setting.lifeline);
  if (answer.outcome.interrupted) return {.interrupted = true};
  if (answer.outcome.exit_code != 0)
    return {.failed = fmt::format("cannot be started: {}", one_line(answer.outcome.line))};
  const std::string source = fmt::format("riffle.peers --prepare {}", contender.spec);
  const Json json = parse_json(answer.text, source);
  const JsonReader reader(json, source);
  return {.command = {reader.at("python").text(), "-m", "riffle.peers.worker"},
          .how = reader.at("how").text(),
          .period = static_cast<int>(reader.at("period").integer(1, 10'000))};
}

Start prepare(const Setting& setting, const Contender& contender) {
  if (contender.peer) return prepare_peer(setting, contender);
  if (setting.head.task.empty())
    return {.command = {setting.worker},
            .how = "riffle's runtime on riffle's engine, compute emulated (riffle-worker)"};
  return {.command = {setting.python, "-W", "ignore", "-m", "riffle.race.worker"},
          .how = "riffle.sync on riffle's engine, one core per worker"};
}

void add_timeline(const Setting& setting, const Contender& contender, const Reports& reports,
                  Result& result) {
  const Timeline timeline = joined(reports, setting.head.dilate);
  for (const RankReport& rank : reports.ranks())
    if (rank.end() && !rank.end()->timeline.empty()) fs::remove(rank.end()->timeline);
  if (timeline.events.empty()) return;
  result.timeline = report::step_timeline(timeline, setting.head.topology.size());
  result.hidden = report::hidden_communication(timeline).count();
  result.timeline_file = contender.file_name() + ".perfetto.json";
  write_file(setting.folder / result.timeline_file, to_json(timeline));
}

RunOptions run_options(const Setting& setting, const Contender& contender, const Result& result,
                       std::vector<std::string> command) {
  RunOptions options;
  options.lab = {.cluster = setting.head.topology,
                 .dilate = setting.head.dilate,
                 .shrink = setting.head.shrink,
                 .events = setting.events,
                 .seed = setting.head.seed};
  options.command = std::move(command);
  options.folder = lines_of(setting, contender);
  options.order = options.folder / "order.json";
  options.lifeline = setting.lifeline;
  constexpr double steps_of_patience = 20;
  if (result.predicted)
    options.patience +=
        Seconds(steps_of_patience * setting.head.dilate * result.predicted->seconds_per_step);
  return options;
}

// Why the run is not what was asked for; empty where it is.
std::string failure_of(const Run& run, const Contest& contest) {
  if (contest.interrupted) return fmt::format("interrupted after {} steps", contest.result.steps);
  if (!run.outcome.line.empty()) return one_line(run.outcome.line);
  if (run.outcome.exit_code != 0)
    return fmt::format("ended with exit code {}", run.outcome.exit_code);
  if (run.reports.steps() == 0) return "its workers have reported no step";
  return "";
}

void run_in(const Setting& setting, const Contender& contender, const Show& show,
            Contest& contest) {
  Start start = prepare(setting, contender);
  contest.result.how = start.how;
  contest.result.failed = start.failed;
  contest.interrupted = start.interrupted;
  if (start.interrupted) contest.result.failed = "interrupted before it began";
  if (start.command.empty()) return;
  Traits traits = traits_of(contender, setting.times, setting.head.topology);
  if (start.period > 0) traits.period = start.period;
  const Length length = length_of(setting, traits);
  RunOptions options = run_options(setting, contender, contest.result, std::move(start.command));
  fs::remove_all(options.folder);
  fs::create_directories(options.folder);
  write_file(options.order, order_json(setting, contender, length, options.folder));
  options.show = [&](const Reports& reports) { show(reports, length.steps); };
  const Run run = run_in_lab(options);
  contest.interrupted = run.outcome.interrupted;
  contest.pace = run.pace;
  measure(run.reports,
          {.dilate = setting.head.dilate,
           .period = length.period,
           .warm = setting.head.task.empty(),
           .target = setting.head.target,
           .compute = setting.times.compute().count()},
          contest.result);
  contest.result.failed = failure_of(run, contest);
  if (contest.result.failed.empty()) add_timeline(setting, contender, run.reports, contest.result);
}

}  // namespace

Length length_of(const Setting& setting, const Traits& traits) {
  constexpr Step least_warm_up = 3;
  const int period = traits.rotation > 0 ? traits.rotation
                     : traits.period > 0 ? traits.period
                                         : traits.round;
  if (!setting.head.task.empty()) return {period, least_warm_up, whole(setting.steps, period)};
  return {period, whole(std::max<Step>(least_warm_up, 2 * traits.staleness + 1), period),
          whole(setting.steps, period)};
}

std::string order_json(const Setting& setting, const Contender& contender, const Length& length,
                       const fs::path& folder) {
  const Race& head = setting.head;
  const bool is_task = !head.task.empty();
  Json json{
      {"contender", contender.spec},
      {"trace", is_task ? Json() : Json(head.trace)},
      {"task", is_task ? Json(head.task) : Json()},
      {"data", setting.data},
      {"seed", head.seed},
      {"steps", length.steps},
      {"warmup", length.warm_up},
      {"period", length.period},
      {"epochs", Json()},
      {"target", head.target ? Json(*head.target) : Json()},
      {"evaluate", setting.evaluate},
      {"batch", setting.batch},
      {"learning_rate", setting.learning_rate},
      {"folder", fs::absolute(folder).string()},
      {"emulated_cluster",
       Json::parse(riffle::to_json(model::slowed_down(head.topology, head.dilate, head.shrink)))},
      {"compute", Json()}};
  if (!is_task) return json.dump(1) + "\n";
  Trace real = setting.times;
  for (Layer& layer : real.layers) {
    layer.forward *= head.dilate;
    layer.backward *= head.dilate;
  }
  real.optimizer_step *= head.dilate;
  json["compute"] = Json::parse(riffle::to_json(real));
  return json.dump(1) + "\n";
}

Contest run_contender(const Setting& setting, const Contender& contender, const Show& show) {
  Contest contest;
  contest.result.contender = contender.spec;
  try {
    contest.result.predicted =
        predict(contender, setting.times, setting.head.topology, setting.events);
    contest.result.groups = groups_of(contender, setting.times, setting.head.topology);
    run_in(setting, contender, show, contest);
  } catch (const std::exception& error) {
    contest.result.failed = one_line(error.what());
  }
  return contest;
}

}  // namespace riffle::race
