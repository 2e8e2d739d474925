#include "simulate/replan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/median.h"
#include "model/cluster_change.h"
#include "riffle/error.h"
#include "schedule/schedule.h"
#include "schedule/watch.h"
#include "simulate/result.h"

namespace riffle::simulator {
namespace {

using schedule::Told;
using schedule::Watch;
using schedule::Window;

constexpr Step kSteps = 32;
constexpr int kLongestWindow = 20;

std::vector<double> paces_of(const Cluster& cluster) {
  std::vector<double> slow;
  for (const WorkerSpec& each : cluster.workers) slow.push_back(each.slow);
  return slow;
}

// Steps under one schedule, from the moment at which all workers begin it.
class Stretch {
 public:
  Stretch(const Trace& trace, const Cluster& cluster, const Cluster& planned,
          const NamedStrategy& strategy, const SimulateOptions& options, Step first, Seconds begin)
      : trace_(trace),
        strategy_(*strategy.strategy),
        first_(first),
        begin_(begin),
        changes_(later(options.changes, begin)),
        simulator_({.trace = trace,
                    .cluster = cluster,
                    .planned = planned,
                    .strategy = strategy_,
                    .seed = options.seed,
                    .changes = changes_,
                    .first = first}) {
    simulator_.record().keep(seen_, cluster.size(), 0);
    lateness_ = schedule::lateness_of(ran());
  }

  // Steps count from the beginning of the run.
  void run_until(Step step) { simulator_.run_until(step - first_); }
  [[nodiscard]] Seconds begin_of(Step step) const {
    return begin_ + Seconds(simulator_.mean_begin(step - first_));
  }
  [[nodiscard]] Window window(Step first, int steps) const { return {first, steps, lateness_}; }
  // What the workers tell of a window: what the model says they have seen.
  [[nodiscard]] std::vector<Told> told(const Window& window) const {
    const auto steps = static_cast<double>(window.steps);
    const Seconds whole = (begin_of(window.first + window.steps) - begin_of(window.first)) / steps;
    std::vector<Told> all;
    for (int i = 0; i < simulator_.world().size(); ++i)
      all.push_back({.whole = whole,
                     .exchanges = std::vector<Seconds>(
                         static_cast<std::size_t>(window.steps * Watch::kLanes))});
    for (const Event& event : seen_.events) {
      const Step at = first_ + event.step - window.first;
      if (first_ + event.step < window.first || at >= window.steps) continue;
      Told& own = all[static_cast<std::size_t>(event.rank)];
      if (event.kind == EventKind::exchange && event.lane < Watch::kLanes)
        own.exchanges[static_cast<std::size_t>(at * Watch::kLanes + event.lane)] +=
            event.end - event.start;
      else if (event.kind != EventKind::exchange && event.kind != EventKind::wait)
        own.busy += (event.end - event.start) / steps;
    }
    return all;
  }
  [[nodiscard]] schedule::Ran ran() const {
    return {strategy_, simulator_.world(), simulator_.buckets()};
  }
  // The first step from `now` on at which the schedule may be replaced.
  [[nodiscard]] Step end_from(Step now) const {
    return schedule::quiet_step(strategy_, simulator_.world(), simulator_.buckets(), now)
        .value_or(now);
  }
  void finish(Step end, Totals& totals, Timeline* timeline, int workers) const {
    totals.add(simulator_, 0, end - first_);
    if (timeline == nullptr) return;
    for (Event event : seen_.events) {
      event.step += first_;
      if (event.rank >= workers || event.step >= end) continue;
      event.start += begin_;
      event.end += begin_;
      timeline->events.push_back(std::move(event));
    }
  }
  [[nodiscard]] std::vector<SimulatedBucket> buckets(Step end) const {
    return last_buckets(simulator_, trace_, end - first_);
  }
  [[nodiscard]] std::string describe() const {
    const Traits& traits = simulator_.traits();
    return fmt::format("now {}, {} bucket{}, a period of {} step{}, delay {}",
                       model::summary(simulator_.world().cluster), simulator_.buckets().size(),
                       simulator_.buckets().size() == 1 ? "" : "s", traits.period,
                       traits.period == 1 ? "" : "s", traits.staleness);
  }

 private:
  // What has happened before the stretch begins holds from its beginning.
  static std::vector<Change> later(std::vector<Change> changes, Seconds begin) {
    for (Change& each : changes) each.at = std::max(each.at - begin, Seconds{});
    return changes;
  }

  const Trace& trace_;
  const Strategy& strategy_;
  Step first_;
  Seconds begin_;
  std::vector<Change> changes_;
  Timeline seen_;  // of all workers
  Simulator simulator_;
  int lateness_ = 0;
};

// Windows and alarms of a stretch, until it ends.
class Rule {
 public:
  explicit Rule(const Cluster& known) : watch_(paces_of(known)) {}

  struct Decision {
    Step at = 0;
    Cluster now;
    std::string why{};
    Seconds paused{};  // by measurements
  };
  // Runs the stretch up to what its workers decide, or to `end`.
  std::optional<Decision> run(Stretch& stretch, Step first, Step end, const Cluster& known,
                              const std::function<Cluster(Seconds)>& now) {
    watch_.restart();
    for (Step at = first;;) {
      const Window window = stretch.window(
          at, step_ > Seconds{} ? Watch::steps_for(step_, kLongestWindow) : Watch::kLeastSteps);
      if (window.judge_at() >= end) return std::nullopt;
      stretch.run_until(window.judge_at());
      const std::vector<Told> told = stretch.told(window);
      step_ = told.front().whole;
      at = window.first + window.steps;
      const auto alarm = watch_.look(window, told, stretch.ran());
      if (!alarm) continue;
      Decision decision{.at = window.judge_at(), .now = known};
      if (alarm->network) {
        const Seconds slice = schedule::slice_time(step_);
        const int slices = schedule::slices_of(known, slice);
        decision.at += slices - 1;
        if (decision.at >= end) return std::nullopt;
        stretch.run_until(decision.at);
        decision.now = now(stretch.begin_of(decision.at));
        decision.paused = slices * slice;
        decision.why = fmt::format("exchanges take {:.2g} times as long; ", alarm->network->factor);
        at = decision.at;
        watch_.restart();
      }
      for (std::size_t i = 0; i < decision.now.workers.size(); ++i)
        decision.now.workers[i].slow = watch_.slow()[i];
      const std::vector<std::string> changes = model::changes(known, decision.now);
      watch_.measured(!changes.empty());
      if (changes.empty()) continue;
      decision.why += fmt::format("{}", fmt::join(changes, "; "));
      return decision;
    }
  }
  [[nodiscard]] Seconds step() const { return step_; }

 private:
  Watch watch_;
  Seconds step_{};
};

// Sessions that serve have no step in common at which to change.
void check_senses(const NamedStrategy& strategy, const Trace& trace, const Cluster& known) {
  const World world(known);
  const BucketPlan buckets = strategy->buckets(trace, CostModel(known), world);
  if (schedule::needs_of(schedule::programs_of(*strategy.strategy, world, buckets)).serves)
    usage_error("--replan: {} keeps the schedule that it begins with", strategy.spec);
}

}  // namespace

Cluster changed(Cluster cluster, const std::vector<Change>& changes, Seconds until) {
  struct Added {
    Bandwidth whole;
    Bandwidth load;
  };
  const auto link_of = [&](LinkId id) -> Link& {
    return id.uplink ? cluster.domains[id.index].uplink : cluster.workers[id.index].link;
  };
  std::vector<std::pair<LinkId, Added>> known;
  for (const Change& change : changes) {
    if (change.at > until) continue;
    if (change.slow) cluster.workers[static_cast<std::size_t>(change.worker)].slow = *change.slow;
    for (const LinkId id : links_of(change, cluster)) {
      Link& link = link_of(id);
      auto found = std::ranges::find(known, id, &std::pair<LinkId, Added>::first);
      if (found == known.end()) found = known.insert(known.end(), {id, {link.bandwidth, {}}});
      Added& state = found->second;
      if (change.bandwidth) state.whole = *change.bandwidth;
      if (change.load) state.load = *change.load;
      if (change.latency) link.latency = *change.latency;
      link.bandwidth = {state.whole.bytes_per_second - state.load.bytes_per_second};
    }
  }
  return cluster;
}

Simulation simulate_replanning(const Trace& trace, const Cluster& cluster,
                               const NamedStrategy& strategy, const SimulateOptions& options) {
  const Step end = options.steps > 0 ? options.steps : kSteps;
  Cluster known = options.planned ? *options.planned : cluster;
  check_senses(strategy, trace, known);
  std::vector<Change> changes = options.changes;
  std::ranges::stable_sort(changes, {}, &Change::at);
  Rule rule(known);
  Totals totals;
  std::vector<Replanned> replanned;
  Seconds noticed{};
  Step first = 0;
  Seconds begin{};
  for (;;) {
    Stretch stretch(trace, cluster, known, strategy, options, first, begin);
    if (!replanned.empty()) replanned.back().what += "; " + stretch.describe();
    const auto decision = rule.run(stretch, first, end, known,
                                   [&](Seconds at) { return changed(cluster, changes, at); });
    const Step until = decision ? std::min(stretch.end_from(decision->at), end) : end;
    stretch.run_until(until);
    stretch.finish(until, totals, options.timeline, options.timeline_workers);
    if (until == end) {
      Simulation result = result_of(trace, cluster, strategy, totals);
      result.buckets = stretch.buckets(end);
      result.replanned = std::move(replanned);
      return result;
    }
    begin = stretch.begin_of(until) + decision->paused;
    totals.seconds += decision->paused.count();
    const auto cause = std::ranges::find_if(
        changes, [&](const Change& each) { return each.at > noticed && each.at <= begin; });
    replanned.push_back({.happened = cause == changes.end() ? noticed : cause->at,
                         .at = begin,
                         .step = until,
                         .what = decision->why,
                         .before = rule.step()});
    noticed = begin;
    first = until;
    known = decision->now;
  }
}

}  // namespace riffle::simulator
