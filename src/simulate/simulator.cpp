#include "simulate/simulator.h"

#include <algorithm>

#include "base/text.h"
#include "riffle/error.h"
#include "schedule/schedule.h"

namespace riffle::simulator {

Simulator::Simulator(const Setup& setup)
    : trace_(setup.trace),
      cluster_(setup.cluster),
      strategy_(setup.strategy),
      first_(setup.first),
      world_(setup.planned),
      cost_(setup.planned),
      buckets_(strategy_.buckets(trace_, cost_, world_)),
      traits_(strategy_.traits_with(world_, buckets_)),
      network_(cluster_, queue_),
      messages_(cluster_, network_),
      workers_({.trace = trace_,
                .cluster = cluster_,
                .buckets = buckets_,
                .optimizer = cluster_.optimizer_step.count() > 0 ? cluster_.optimizer_step
                                                                 : trace_.optimizer_step,
                .window = std::max(traits_.staleness, 1) + 2,
                .seed = setup.seed,
                .plan_of = [this](Step step) { return plan_of(step); }},
               queue_, network_) {
  schedule_changes(setup.changes);
}

std::shared_ptr<const StepPlan> Simulator::plan_of(Step step) {
  const Step at = first_ + step;
  const Step key = traits_.period > 0 ? at % traits_.period : at;
  auto found = plans_.find(key);
  if (found == plans_.end()) {
    const Program program = schedule::program_of(strategy_, traits_.warm_up + at, world_, buckets_);
    auto plan = std::make_shared<const StepPlan>(
        compile_step(program, buckets_, trace_.dtype, cost_, messages_));
    if (traits_.period == 0) plans_.clear();  // it does not come back
    found = plans_.emplace(key, std::move(plan)).first;
  }
  traffic_.emplace_back(found->second->bytes, found->second->messages);
  return found->second;
}

double Simulator::bytes(Step from, Step to) const {
  double sum = 0;
  for (Step step = from; step < to; ++step) sum += traffic_.at(step).first;
  return sum;
}

double Simulator::messages(Step from, Step to) const {
  double sum = 0;
  for (Step step = from; step < to; ++step) sum += traffic_.at(step).second;
  return sum;
}

void Simulator::run_until(Step step) {
  if (!started_) {
    started_ = true;
    workers_.start();
    workers_.collectives().flush(0);
    network_.settle(0);
  }
  while (!workers_.begun(step)) {
    if (queue_.empty()) usage_error("simulation: {}", workers_.stuck());
    const Agenda event = queue_.pop();
    const double now = event.time;
    ++events_;
    switch (event.what) {
      case Happening::stream_done:
        network_.stream_done(event.id, now);
        break;
      case Happening::left:
        workers_.collectives().left(event.id, now);
        break;
      case Happening::delivery:
        workers_.collectives().delivered(event.id, now);
        break;
      case Happening::begin:
        workers_.collectives().begin_listed(event.id, now);
        break;
      case Happening::timed_done:
        workers_.collectives().timed_done(event.id, now);
        break;
      case Happening::lane:
        workers_.lane_event(event.id, now);
        break;
      case Happening::compute:
        workers_.compute_event(event.id, now);
        break;
      case Happening::change:
        apply(changes_[event.id]);
        break;
    }
    if (!queue_.empty() && queue_.next() <= now) continue;
    workers_.collectives().flush(now);
    network_.settle(now);
  }
}

// ---- changes

void Simulator::schedule_changes(const std::vector<Change>& changes) {
  changes_ = changes;
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    const Change& change = changes_[i];
    if (change.loss || change.jitter)
      usage_error("event {}: {} is not simulated; riffle lab emulates it", print(change),
                  change.loss ? "loss=" : "jitter=");
    for (const LinkId link : links_of(change, cluster_)) {
      const int up = way_up(link);
      network_.declare_variable(up);
      network_.declare_variable(up + 1);
      variables_.try_emplace(up, Variable{.bandwidth = network_.links().capacity(up)});
    }
    if (change.at.count() > 0)
      queue_.push(change.at.count(), Happening::change, static_cast<int>(i));
  }
  for (const Change& change : changes_)
    if (change.at.count() == 0) apply(change);
}

int Simulator::way_up(LinkId link) const {
  return link.uplink ? network_.links().domain(link.index, kUp) : Links::worker(link.index, kUp);
}

void Simulator::apply(const Change& change) {
  if (change.link.empty()) return workers_.set_slow(change.worker, *change.slow);
  for (const LinkId link : links_of(change, cluster_)) apply(change, link);
}

// Traffic of others is a constant rate that our flows do not get.
void Simulator::apply(const Change& change, LinkId link) {
  const int up = way_up(link);
  if (change.latency) network_.set_latency(up, change.latency->count());
  Variable& state = variables_.at(up);
  if (change.bandwidth) state.bandwidth = change.bandwidth->bytes_per_second;
  if (change.load) state.load = change.load->bytes_per_second;
  if (change.bandwidth || change.repair) state.cut = false;
  if (change.cut) state.cut = true;
  if (state.load >= state.bandwidth)
    usage_error("event {}: others take {} of {}; nothing is left", print(change),
                spell(Bandwidth{state.load}), spell(Bandwidth{state.bandwidth}));
  for (const int way : {up, up + 1})
    network_.set_bandwidth(way, state.cut ? 0 : state.bandwidth - state.load);
}

}  // namespace riffle::simulator
