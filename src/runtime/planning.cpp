#include "runtime/planning.h"

#include <fmt/format.h>

#include <algorithm>

#include "riffle/error.h"
#include "runtime/lanes.h"

namespace riffle::runtime {
namespace {

// Strategies whose predictions differ by less are equally fast, as far as predictions go.
constexpr double kClearly = 0.98;
// Where nothing hides under computing, times of layers still must not be zero.
constexpr double kLeastOverlap = 1e-6;

constexpr std::string_view kPlanSource = "the plan";

bool fits(const Trace& trace, const ModelSpec& model) {
  return std::ranges::equal(
      trace.layers, model.parameters, {}, [](const Layer& layer) { return layer.elements; },
      [](const TensorSpec& parameter) { return parameter.elements; });
}

// Whether this session could run it.
bool can_run(const NamedStrategy& strategy, const Trace& trace, const World& world,
             bool has_algorithms) {
  const BucketPlan buckets = strategy->buckets(trace, CostModel(world.cluster), world);
  const auto programs = schedule::programs_of(*strategy.strategy, world, buckets);
  const schedule::Needs needs = schedule::needs_of(programs);
  // Owners keep their slices: no change into serving, or out of it.
  if (needs.lanes > kLeastLanes || needs.serves) return false;
  return has_algorithms || std::ranges::all_of(programs, [](const Program& program) {
           return std::ranges::all_of(program.exchanges, [](const Exchange& exchange) {
             return exchange.algorithm == Algorithm::automatic;
           });
         });
}

Plan make_session_plan(const Automatic& automatic, const Trace& trace, const World& world,
                       double overlap, bool has_algorithms) {
  // Only what overlaps is simulated; the rest of computing takes as long under every strategy.
  const Trace hidden = overlapped(trace, std::max(overlap, kLeastOverlap));
  std::vector<std::string> specs = allowed_specs(automatic);
  std::erase_if(specs, [&](const std::string& spec) {
    try {
      return !can_run(automatic.table.make(spec), hidden, world, has_algorithms);
    } catch (const UsageError&) {
      return true;
    }
  });
  if (specs.empty()) usage_error("auto: no strategy of the table can run here");
  Plan plan = make_plan(hidden, world.cluster, automatic.table, specs);
  const Seconds beside = trace.compute() - hidden.compute();
  for (Candidate& each : plan.candidates) {
    each.simulation.iteration += beside;
    each.simulation.compute += beside;
    each.per_effective_step = each.simulation.iteration / each.effective_step;
    each.simulation.efficiency = each.simulation.compute / each.simulation.iteration;
    each.simulation.speedup = each.simulation.workers * each.simulation.efficiency;
    each.reason = reason_of(each);
  }
  plan.trace = trace;
  return plan;
}

const Candidate& chosen(const Plan& plan, const Automatic& automatic, const std::string& now) {
  const Candidate& best = best_allowed(plan, automatic, kPlanSource);
  const auto running = std::ranges::find(plan.candidates, now, &Candidate::spec);
  const bool stays = running != plan.candidates.end() &&
                     best.per_effective_step > running->per_effective_step * kClearly;
  return stays ? *running : best;
}

}  // namespace

const std::string& asked_spec(const NamedStrategy& strategy, const SessionOptions& options) {
  return options.automatic ? options.automatic->spec : strategy.spec;
}

Running begin_running(Exchanger& exchanger, const NamedStrategy& strategy, const ModelSpec& model,
                      const std::optional<Resumed>& resumed, SessionOptions& options) {
  check_equal(exchanger, asked_spec(strategy, options), "the strategy");
  if (!options.automatic) {
    if (options.plan)
      usage_error("a plan and the strategy {} are given: ask for auto, or leave the plan out",
                  strategy.spec);
    return {strategy};
  }
  const Automatic& automatic = *options.automatic;
  std::string text;
  if (resumed)
    text = resumed->plan;
  else if (options.plan)
    text = to_json(*options.plan);
  text = broadcast(exchanger, std::move(text));
  if (text.empty()) return {resumed ? automatic.table.make(resumed->running) : strategy};
  Plan plan = plan_from_json(text, kPlanSource);
  plan.expect_workers(exchanger.ranks().size(), kPlanSource);
  if (resumed) return {automatic.table.make(resumed->running), std::move(plan)};
  if (!options.cluster) options.cluster = plan.network;
  if (!options.trace && plan.trace && fits(*plan.trace, model)) options.trace = plan.trace;
  NamedStrategy planned = automatic.table.make(best_allowed(plan, automatic, kPlanSource).spec);
  return {std::move(planned), std::move(plan)};
}

Running plan_running(Exchanger& exchanger, const Automatic& automatic, const NamedStrategy& now,
                     const Trace& trace, const World& world, double overlap) {
  // What fails on the lowest rank fails on all: they wait for its answer.
  std::string told;
  if (exchanger.rank() == exchanger.ranks().ranks().front()) try {
      told = "+" + to_json(make_session_plan(automatic, trace, world, overlap,
                                             exchanger.has_algorithms()));
    } catch (const UsageError& error) {
      told = fmt::format("-{}", error.what());
    }
  told = broadcast(exchanger, std::move(told));
  if (told.front() == '-') throw UsageError(told.substr(1));
  Plan plan = plan_from_json(told.substr(1), kPlanSource);
  NamedStrategy next = automatic.table.make(chosen(plan, automatic, now.spec).spec);
  return {std::move(next), std::move(plan)};
}

}  // namespace riffle::runtime
