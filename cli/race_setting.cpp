#include "race_setting.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <thread>

#include "base/json.h"
#include "base/text.h"
#include "common.h"
#include "lab/limits.h"
#include "riffle/error.h"
#include "riffle/load.h"

namespace riffle::cli {
namespace {

namespace fs = std::filesystem;

int cores() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::optional<double> factor(const std::string& text, std::string_view option, double most) {
  if (text == "auto") return std::nullopt;
  const double value = parse_number(text, option);
  if (value < 1 || value > most)
    usage_error("{} {}: must be auto, or 1 to {:g}", option, text, most);
  return value;
}

// Beside this program, or where the environment says.
std::string beside_us(const std::string& name) {
  return (fs::read_symlink("/proc/self/exe").parent_path() / name).string();
}

void check_words(const RaceArguments& arguments) {
  if (!arguments.task.empty() && !arguments.trace.empty())
    usage_error("--task (real compute) or --trace (emulated compute), not both");
  if (arguments.steps && arguments.epochs)
    usage_error("--steps and --epochs say the same; give one");
  if (!arguments.trace.empty() && (arguments.target || arguments.epochs))
    usage_error("--target and --epochs need --task: with --trace nothing is learned");
  if (arguments.trace.empty() && factor(arguments.shrink, "--shrink", 1e6).value_or(1) != 1)
    usage_error("--shrink {}: tensors of a real task cannot shrink; it goes with --trace",
                arguments.shrink);
}

// Asks Python for the data and for what a step of the task takes of a core.
void measure_task(race::Setting& setting, const RaceArguments& arguments) {
  constexpr Seconds patience{900};  // data may have to be fetched
  const int workers = setting.head.topology.size();
  const auto answer = race::ask({setting.python, "-W", "ignore", "-m", "riffle.race.prepare",
                                 setting.head.task, "--data", arguments.data, "--workers",
                                 std::to_string(workers), "--seed", std::to_string(arguments.seed)},
                                patience, setting.lifeline,
                                [](const std::string& line) { fmt::print(stderr, "{}\n", line); });
  if (answer.outcome.interrupted) throw Exit{answer.outcome.exit_code};
  if (answer.outcome.exit_code != 0) throw Exit{answer.outcome.exit_code == 2 ? 2 : 1};
  const std::string source = "riffle.race.prepare";
  const Json json = parse_json(answer.text, source);
  const JsonReader reader(json, source);
  setting.data = reader.at("data").text();
  setting.batch = static_cast<int>(reader.at("batch").integer(1, 1 << 20));
  setting.learning_rate = reader.at("learning_rate").number();
  setting.times = trace_from_json(json.at("trace").dump(), source);
  const double per_epoch = reader.at("steps_per_epoch").number_at_least(1);
  constexpr double usual_epochs = 3;
  setting.steps = arguments.steps.value_or(
      std::max<Step>(1, std::llround(arguments.epochs.value_or(usual_epochs) * per_epoch)));
}

// Real compute of many workers on few cores is as much slower as they are fewer; the network is
// slowed down alike.
double stretch_of_compute(int workers) {
  return std::max(1.0, static_cast<double>(workers) / cores());
}

void scale_times(Trace& trace, double factor) {
  for (Layer& layer : trace.layers) {
    layer.forward *= factor;
    layer.backward *= factor;
  }
  trace.optimizer_step *= factor;
}

void choose_scale(race::Setting& setting, const RaceArguments& arguments) {
  const Cluster& cluster = setting.head.topology;
  const lab::Machine machine{cores()};
  const bool is_task = !setting.head.task.empty();
  const auto dilate = factor(arguments.dilate, "--dilate", lab::most_dilation);
  auto shrink = factor(arguments.shrink, "--shrink", 1e6);
  if (is_task) shrink = 1;
  const lab::Scale scale =
      lab::least_scale(cluster, setting.times.bytes(), dilate, shrink, machine);
  setting.head.shrink = scale.shrink;
  setting.head.dilate = scale.dilate;
  if (is_task && !dilate)
    setting.head.dilate = std::max(scale.dilate, stretch_of_compute(cluster.size()));
  lab::refuse_what_cannot_be(cluster, setting.head.dilate, setting.head.shrink, machine,
                             setting.events);
}

void say(const race::Setting& setting) {
  const race::Race& head = setting.head;
  const int workers = head.topology.size();
  fmt::print(stderr, "riffle: {} workers, {}; time stretched {:g} times{}\n", workers, head.cluster,
             head.dilate,
             head.shrink > 1
                 ? fmt::format(", messages and links 1/{:g} of their bytes", head.shrink)
                 : "");
  if (head.task.empty())
    fmt::print(
        stderr,
        "riffle: {}, {} of weights, compute emulated: {} a step; times are those of the true "
        "cluster\n",
        setting.times.model, print(setting.times.bytes()), print(setting.times.compute()));
  else
    fmt::print(stderr,
               "riffle: {} ({} data), {} x {} examples a step, real compute: {} workers share {} "
               "cores, so the network is slowed down {:g} times and times below are measured / "
               "{:g}; a step computes for {}\n",
               head.task, setting.data, workers, setting.batch, workers, cores(), head.dilate,
               head.dilate, print(setting.times.compute()));
}

}  // namespace

race::Setting checked_setting(const RaceArguments& arguments) {
  check_words(arguments);
  race::Setting setting;
  race::Race& head = setting.head;
  head.command = command_line();
  head.cluster = arguments.cluster;
  head.topology = load_cluster(arguments.cluster);
  if (head.topology.size() < 2)
    usage_error("--cluster {}: a race needs two workers", arguments.cluster);
  head.seed = arguments.seed;
  head.trace = arguments.trace;
  if (arguments.trace.empty()) {
    head.task = arguments.task.empty() ? "digits" : arguments.task;
    head.target = arguments.target.value_or(0.97);
  } else {
    setting.times = load_trace(arguments.trace);
    setting.steps = arguments.steps.value_or(20);
  }
  for (const std::string& each : arguments.events)
    for (const Change& change : load_changes(each)) {
      links_of(change, head.topology);
      setting.events.push_back(change);
      head.events += (head.events.empty() ? "" : " ") + print(change);
    }
  factor(arguments.dilate, "--dilate", lab::most_dilation);
  factor(arguments.shrink, "--shrink", 1e6);
  const char* python = std::getenv("RIFFLE_PYTHON");
  setting.python = python == nullptr ? "python3" : python;
  setting.worker = beside_us("riffle-worker");
  setting.folder = arguments.folder;
  return setting;
}

void complete(race::Setting& setting, const RaceArguments& arguments) {
  const bool is_task = !setting.head.task.empty();
  if (is_task) measure_task(setting, arguments);
  choose_scale(setting, arguments);
  if (is_task)
    scale_times(setting.times,
                stretch_of_compute(setting.head.topology.size()) / setting.head.dilate);
  say(setting);
}

}  // namespace riffle::cli
