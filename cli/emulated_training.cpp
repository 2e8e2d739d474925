#include "emulated_training.h"

#include <chrono>

#include "model/slowed_down.h"
#include "strategies/true_sizes.h"

namespace riffle {
namespace {

Seconds now() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

// Lets the session plan for the network and the times as they are emulated.
void plan_for_emulated(SessionOptions& options, const lab::LabEnvironment& environment, Trace trace,
                       int size) {
  for (Layer& layer : trace.layers) {
    layer.forward *= environment.dilate;
    layer.backward *= environment.dilate;
  }
  trace.optimizer_step *= environment.dilate;
  options.trace = std::move(trace);
  if (environment.cluster.size() == size)
    options.cluster =
        model::slowed_down(environment.cluster, environment.dilate, environment.shrink);
}

// Also those that a plan takes later.
StrategyTable of_true_sizes(const Trace& whole, double shrink) {
  std::vector<std::int64_t> elements;
  for (const Layer& layer : whole.layers) elements.push_back(layer.elements);
  return with_true_sizes(StrategyTable::builtin(), elements, shrink);
}

}  // namespace

EmulatedTraining::Model::Model(const Trace& trace) {
  for (const Layer& layer : trace.layers)
    memory.emplace_back(static_cast<std::size_t>(layer.elements), 1.0F);
  for (std::size_t i = 0; i < memory.size(); ++i)
    spec.parameters.push_back({.name = trace.layers[i].name,
                               .elements = trace.layers[i].elements,
                               .dtype = DType::f32,
                               .data = reinterpret_cast<std::byte*>(memory[i].data()),
                               .shape = trace.layers[i].shape});
}

EmulatedTraining::EmulatedTraining(Engine& engine, const std::string& strategy, const Trace& whole,
                                   const lab::LabEnvironment& environment, EmulatedOptions options)
    : trace_(lab::shrunk(whole, environment.shrink)),
      record_(options.record),
      model_(trace_),
      compute_(trace_, environment,
               lab::host_of(engine.rank(), engine.size(), environment.cluster.size()),
               options.seed) {
  const ChosenStrategy chosen = choose_strategy(strategy, of_true_sizes(whole, environment.shrink));
  SessionOptions session;
  if (!options.sense) plan_for_emulated(session, environment, trace_, engine.size());
  session.automatic = chosen.automatic;
  session.record = options.record;
  session.log = std::move(options.log);
  session_ = std::make_unique<Session>(engine, chosen.strategy, model_.spec, session);
}

template <typename Take>
void EmulatedTraining::take(EventKind kind, const std::string& name, Take take) {
  const Seconds start = now();
  take();
  if (record_)
    computed_.events.push_back({.kind = kind,
                                .name = name,
                                .rank = session_->rank(),
                                .lane = 0,
                                .step = session_->step(),
                                .start = start,
                                .end = now(),
                                .bytes = {}});
}

void EmulatedTraining::run_forward() {
  int last = -1;
  session_->begin_forward();
  for (int layer = 0; layer < static_cast<int>(trace_.layers.size()); ++layer) {
    const int bucket = session_->bucket_of(layer);
    if (bucket != last && session_->wait_before_forward(bucket)) session_->stepped(bucket);
    last = bucket;
    take(EventKind::forward, trace_.layers[static_cast<std::size_t>(layer)].name,
         [&] { compute_.forward(layer); });
    session_->forward_done(layer);
  }
}

// Where a bucket is mixed as soon as it is updated, it is updated as soon as it is ready.
void EmulatedTraining::run_backward(std::vector<bool>& updated) {
  const bool by_bucket = session_->updates_in_backward();
  for (int layer = static_cast<int>(trace_.layers.size()) - 1; layer >= 0; --layer) {
    take(EventKind::backward, trace_.layers[static_cast<std::size_t>(layer)].name,
         [&] { compute_.backward(layer); });
    const auto bucket = session_->mark_gradient_ready(layer);
    if (!bucket || !by_bucket) continue;
    if (session_->before_step(*bucket)) session_->stepped(*bucket);
    updated[static_cast<std::size_t>(*bucket)] = true;
  }
  session_->backward_done();
}

void EmulatedTraining::run_step() {
  compute_.begin_step(session_->step());
  std::vector<bool> updated(session_->buckets().size());
  run_forward();
  run_backward(updated);
  take(EventKind::optimizer, "optimizer", [&] { compute_.optimizer_step(); });
  for (std::size_t b = 0; b < updated.size(); ++b)
    if (!updated[b] && session_->before_step(static_cast<int>(b)))
      session_->stepped(static_cast<int>(b));
  session_->end_step();
  (void)session_->relayout();
}

Seconds EmulatedTraining::exposed() const {
  const SessionStats stats = session_->stats();
  return stats.exposed_communication * static_cast<double>(stats.steps);
}

Timeline EmulatedTraining::timeline_from(Step step) const {
  Timeline timeline = session_->timeline();
  for (Event& event : timeline.events) {
    event.start += session_->timeline_begin();
    event.end += session_->timeline_begin();
  }
  timeline.events.insert(timeline.events.end(), computed_.events.begin(), computed_.events.end());
  std::erase_if(timeline.events, [&](const Event& event) { return event.step < step; });
  return timeline;
}

}  // namespace riffle
