// A worker whose compute is emulated: riffle-worker --trace resnet50 --strategy mg-wfbp --steps 20
//
// Gradients of the trace's sizes (shrunk as the lab says) travel through the real runtime, over the
// engine the launcher's environment names, while forward and backward take the trace's times
// (dilated as the lab says). Rank 0 prints a line of JSON with times of the true cluster.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <thread>

#include "base/json.h"
#include "lab/emulated_compute.h"
#include "model/slowed_down.h"
#include "riffle/error.h"
#include "riffle/load.h"
#include "riffle/make_engine.h"
#include "riffle/session.h"
#include "strategies/true_sizes.h"

namespace riffle {
namespace {

struct Arguments {
  std::string trace = "resnet50";
  std::vector<std::string> strategies = {"mg-wfbp"};
  int steps = 10;
  int warm_up = 3;
};

// Parameters of the trace's sizes.
struct Model {
  explicit Model(const Trace& trace) {
    for (const Layer& layer : trace.layers)
      memory.emplace_back(static_cast<std::size_t>(layer.elements), 1.0F);
    for (std::size_t i = 0; i < memory.size(); ++i)
      spec.parameters.push_back({.name = trace.layers[i].name,
                                 .elements = trace.layers[i].elements,
                                 .dtype = DType::f32,
                                 .data = reinterpret_cast<std::byte*>(memory[i].data())});
  }
  std::vector<std::vector<float>> memory;
  ModelSpec spec;
};

// What the session plans for: the network and the times as they are emulated.
SessionOptions session_options(const lab::LabEnvironment& environment, Trace trace, int size) {
  SessionOptions options;
  for (Layer& layer : trace.layers) {
    layer.forward *= environment.dilate;
    layer.backward *= environment.dilate;
  }
  trace.optimizer_step *= environment.dilate;
  options.trace = std::move(trace);
  if (environment.cluster.size() == size)
    options.cluster =
        model::slowed_down(environment.cluster, environment.dilate, environment.shrink);
  return options;
}

void run_forward(Session& session, lab::EmulatedCompute& compute, int layers) {
  int last = -1;
  session.begin_forward();
  for (int layer = 0; layer < layers; ++layer) {
    const int bucket = session.bucket_of(layer);
    if (bucket != last && session.wait_before_forward(bucket)) session.stepped(bucket);
    last = bucket;
    compute.forward(layer);
    session.forward_done(layer);
  }
}

// Where a bucket is mixed as soon as it is updated, it is updated as soon as it is ready.
void run_backward(Session& session, lab::EmulatedCompute& compute, int layers,
                  std::vector<bool>& updated) {
  const bool by_bucket = session.updates_in_backward();
  for (int layer = layers - 1; layer >= 0; --layer) {
    compute.backward(layer);
    const auto bucket = session.mark_gradient_ready(layer);
    if (!bucket || !by_bucket) continue;
    if (session.before_step(*bucket)) session.stepped(*bucket);
    updated[static_cast<std::size_t>(*bucket)] = true;
  }
  session.backward_done();
}

void run_step(Session& session, lab::EmulatedCompute& compute, int layers) {
  compute.begin_step(session.step());
  std::vector<bool> updated(session.buckets().size());
  run_forward(session, compute, layers);
  run_backward(session, compute, layers, updated);
  compute.optimizer_step();
  for (std::size_t b = 0; b < updated.size(); ++b)
    if (!updated[b] && session.before_step(static_cast<int>(b)))
      session.stepped(static_cast<int>(b));
  session.end_step();
  (void)session.relayout();
}

NamedStrategy of_true_sizes(const NamedStrategy& strategy, const Trace& whole, double shrink) {
  std::vector<std::int64_t> elements;
  for (const Layer& layer : whole.layers) elements.push_back(layer.elements);
  return with_true_sizes(strategy, std::move(elements), shrink);
}

// `whole` is the true model, of which the lab's share travels.
Json measure(Engine& engine, const std::string& strategy, const Trace& whole,
             const lab::LabEnvironment& environment, const Arguments& arguments) {
  using Clock = std::chrono::steady_clock;
  const Trace trace = lab::shrunk(whole, environment.shrink);
  Model model(trace);
  const int layers = static_cast<int>(trace.layers.size());
  const ChosenStrategy chosen = choose_strategy(strategy);
  SessionOptions options = session_options(environment, trace, engine.size());
  options.automatic = chosen.automatic;
  Session session(engine, of_true_sizes(chosen.strategy, whole, environment.shrink), model.spec,
                  options);
  lab::EmulatedCompute compute(trace, environment, engine.rank() % environment.cluster.size());
  for (int i = 0; i < arguments.warm_up; ++i) run_step(session, compute, layers);
  const Seconds exposed = session.stats().exposed_communication * arguments.warm_up;
  const auto begin = Clock::now();
  for (int i = 0; i < arguments.steps; ++i) run_step(session, compute, layers);
  const Seconds took = Clock::now() - begin;
  const int all = arguments.warm_up + arguments.steps;
  const double unit = arguments.steps * environment.dilate;
  std::vector<double> means{took.count() / unit,
                            (session.stats().exposed_communication * all - exposed).count() / unit};
  session.average(means);
  return {{"strategy", strategy},           {"workers", engine.size()},
          {"ran", session.strategy().spec}, {"dilate", environment.dilate},
          {"shrink", environment.shrink},   {"buckets", session.buckets().size()},
          {"seconds_per_step", means[0]},   {"exposed_communication_seconds", means[1]}};
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
