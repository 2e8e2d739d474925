// A worker whose compute is emulated: riffle-worker --trace resnet50 --strategy mg-wfbp --steps 20
//
// Gradients of the trace's sizes (shrunk as the lab says) travel through the real runtime, over the
// engine the launcher's environment names, while forward and backward take the trace's times
// (dilated as the lab says). Rank 0 prints a line of JSON with times of the true cluster; in a race
// (RIFFLE_RACE names its order) every rank reports step by step to a file instead.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>

#include "base/files.h"
#include "base/json.h"
#include "emulated_training.h"
#include "riffle/error.h"
#include "riffle/load.h"
#include "riffle/make_engine.h"

namespace riffle {
namespace {

struct Arguments {
  std::string trace = "resnet50";
  std::vector<std::string> strategies = {"mg-wfbp"};
  int steps = 10;
  int warm_up = 3;
  bool sense = false;
};

using Clock = std::chrono::steady_clock;

// When steps ended and what the session said, by the clock of the lab's events.
class Diary {
 public:
  explicit Diary(const lab::LabEnvironment& environment)
      : start_(environment.start), dilate_(environment.dilate) {}
  void end_step() { steps_.push_back(now()); }
  void note(const std::string& line) {
    lines_.push_back(Json{{"at", now()}, {"line", line}});
    fmt::print(stderr, "riffle: {:.2f} s, {}\n", now(), line);
  }
  void add_to(Json& json) const {
    json["steps_ended"] = steps_;
    json["sensed"] = lines_;
  }

 private:
  [[nodiscard]] double now() const {
    const auto at = std::chrono::steady_clock::now().time_since_epoch();
    return (Seconds(at).count() - static_cast<double>(start_) * 1e-9) / dilate_;
  }
  lab::Nanoseconds start_;
  double dilate_;
  std::vector<double> steps_;
  Json lines_ = Json::array();
};

Json measure(Engine& engine, const std::string& strategy, const Trace& trace,
             const lab::LabEnvironment& environment, const Arguments& arguments) {
  Diary diary(environment);
  EmulatedTraining training(
      engine, strategy, trace, environment,
      {.sense = arguments.sense, .log = [&](const std::string& line) { diary.note(line); }});
  Session& session = training.session();
  const auto run_step = [&] {
    training.run_step();
    diary.end_step();
  };
  for (int i = 0; i < arguments.warm_up; ++i) run_step();
  const Seconds exposed = training.exposed();
  const auto begin = Clock::now();
  for (int i = 0; i < arguments.steps; ++i) run_step();
  const Seconds took = Clock::now() - begin;
  const double unit = arguments.steps * environment.dilate;
  std::vector<double> means{took.count() / unit, (training.exposed() - exposed).count() / unit};
  session.average(means);
  Json result{{"strategy", strategy},           {"workers", engine.size()},
              {"ran", session.strategy().spec}, {"dilate", environment.dilate},
              {"shrink", environment.shrink},   {"buckets", session.buckets().size()},
              {"seconds_per_step", means[0]},   {"exposed_communication_seconds", means[1]}};
  if (arguments.sense) diary.add_to(result);
  return result;
}

// A line at once, for who watches the race.
class Lines {
 public:
  explicit Lines(const std::string& file) : file_(std::fopen(file.c_str(), "a"), std::fclose) {
    if (!file_) usage_error("{}: cannot be written", file);
  }
  void write(const Json& line) {
    fmt::print(file_.get(), "{}\n", line.dump());
    std::fflush(file_.get());
  }

 private:
  std::unique_ptr<FILE, int (*)(FILE*)> file_;
};

void race(Engine& engine, const std::string& order_file, const lab::LabEnvironment& environment) {
  const Json json = parse_json(read_file(order_file), order_file);
  const JsonReader order(json, order_file);
  constexpr std::int64_t most = 100'000'000;
  const Step steps = order.at("steps").integer(1, most);
  const Step warm_up = order.at("warmup").integer(0, most);
  const std::string name = fmt::format("{}/rank{}", order.at("folder").text(), engine.rank());
  Lines lines(name + ".jsonl");
  EmulatedTraining training(
      engine, order.at("contender").text(), load_trace(order.at("trace").text()), environment,
      {.record = true, .seed = static_cast<std::uint64_t>(order.at("seed").integer(0, most))});
  for (Step i = 0; i < warm_up; ++i) training.run_step();
  Seconds exposed = training.exposed();
  const auto begin = Clock::now();
  const auto seconds = [&] { return Seconds(Clock::now() - begin).count(); };
  for (Step step = 1; step <= steps; ++step) {
    training.run_step();
    const Seconds before = std::exchange(exposed, training.exposed());
    lines.write({{"step", step}, {"seconds", seconds()}, {"exposed", (exposed - before).count()}});
  }
  // The last steps, so that the last but one is seen whole.
  constexpr Step recorded = 4;
  const double took = seconds();
  write_file(name + ".timeline.json",
             to_json(training.timeline_from(warm_up + std::max<Step>(0, steps - recorded))));
  lines.write({{"end", "steps"},
               {"steps", steps},
               {"seconds", took},
               {"timeline", name + ".timeline.json"}});
  std::vector<double> none{0};
  training.session().average(none);  // nobody ends while others still exchange
}

void run(const Arguments& arguments) {
  const auto launched = read_launch_environment(process_environment());
  if (!launched || launched->size < 2)
    usage_error("this is one of several workers: start it with riffle lab or riffle launch");
  JobStore store = open_job_store(*launched);
  const auto engine = make_network_engine(network_engine_options(*launched, *store.client));
  lab::LabEnvironment environment;
  environment.cluster.workers.resize(static_cast<std::size_t>(launched->size));
  if (const auto in_lab = lab::read_lab_environment()) environment = *in_lab;
  if (const auto order = process_environment()("RIFFLE_RACE"))
    return race(*engine, *order, environment);
  const Trace trace = load_trace(arguments.trace);
  for (const std::string& strategy : arguments.strategies) {
    const Json result = measure(*engine, strategy, trace, environment, arguments);
    if (engine->rank() == 0) fmt::print("{}\n", result.dump());
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace riffle

int main(int argc, char** argv) {
  CLI::App app{"A worker that takes a trace's times and moves its gradients"};
  riffle::Arguments arguments;
  app.add_option("--trace", arguments.trace, "a model's layers, sizes and times");
  app.add_option("--strategy", arguments.strategies, "NAME[:key=value,...], repeatable");
  app.add_option("--steps", arguments.steps)->check(CLI::Range(1, 1'000'000));
  app.add_flag("--sense", arguments.sense,
               "measure network and times and plan again when they change, instead of planning for "
               "what the lab emulates; prints when steps ended and what was sensed");
  app.add_option("--warmup", arguments.warm_up)->check(CLI::Range(0, 1'000'000));
  app.footer(
      "Example: riffle lab flat:4,latency=2ms,bandwidth=200Mbps --shrink 50 -- riffle-worker "
      "--trace resnet50 --strategy wfbp --strategy dasgd");
  try {
    app.parse(argc, argv);
    riffle::run(arguments);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const riffle::UsageError& error) {
    fmt::print(stderr, "riffle-worker: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "riffle-worker: {}\n", error.what());
    return 1;
  }
}
