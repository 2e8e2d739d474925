#include "runtime/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/files.h"
#include "model/cluster_change.h"
#include "riffle/error.h"
#include "runtime/whole_model.h"

namespace riffle {
namespace {

BucketPlan buckets_of(const runtime::Agreement& agreed, const Strategy& strategy,
                      const CostModel& cost) {
  if (!agreed.layers_each.empty()) return make_buckets(agreed.trace, agreed.layers_each);
  return strategy.buckets(runtime::overlapped(agreed.trace, agreed.overlap), cost, agreed.world);
}

schedule::Overlap::Mode mode_of(OverlapMode mode) {
  switch (mode) {
    case OverlapMode::full:
      return schedule::Overlap::Mode::full;
    case OverlapMode::watched:
      return schedule::Overlap::Mode::watched;
    case OverlapMode::none:
      break;
  }
  return schedule::Overlap::Mode::none;
}

// Of buckets that carry the model's buffers.
std::vector<Program> programs_of(const Strategy& strategy, const World& world,
                                 const BucketPlan& buckets) {
  if (world.size() == 1) return {};
  return schedule::programs_of(strategy, world, buckets);
}

schedule::Needs needs_of(const Strategy& strategy, const World& world, const BucketPlan& buckets) {
  return schedule::needs_of(programs_of(strategy, world, buckets));
}

bool cut_alike(const BucketPlan& some, const BucketPlan& others) {
  return std::ranges::equal(some, others, [](const Bucket& a, const Bucket& b) {
    return a.first == b.first && a.last == b.last;
  });
}

// Checked before ranks talk to each other, and with what the environment adds.
SessionOptions checked_options(SessionOptions options) {
  if (!(options.timeout > Seconds(0)))
    usage_error("timeout: {}: must be more than 0", print(options.timeout));
  if (options.sense_window < 1)
    usage_error("sense_window: {}: must be 1 or more", options.sense_window);
  if (!options.profile) options.profile = read_profile_request(process_environment());
  return options;
}

}  // namespace

Session::State::State(std::unique_ptr<runtime::Exchanger> by, NamedStrategy strategy, ModelSpec of,
                      SessionOptions with)
    : exchanger(std::move(by)),
      model(std::move(of)),
      options(checked_options(std::move(with))),
      asked(runtime::asked_spec(strategy, options)),
      resumed(runtime::read_resumed(options.resume, identity())),
      running(runtime::begin_running(*exchanger, strategy, model, resumed, options)),
      agreed(runtime::agree(*exchanger, running.strategy, model, options, resumed)),
      cost(agreed.world.cluster),
      plan(runtime::Layout(model, buckets_of(agreed, this->strategy(), *cost)).buckets),
      needs(needs_of(this->strategy(), agreed.world, plan)),
      recorder(exchanger->rank(), options.record),
      values(exchanger->memory(), model, runtime::Layout(model, plan), needs),
      steps(*exchanger, values, model.parameters.size(),
            options.profile ? options.profile->steps : 0),
      overlap(needs, mode_of(options.overlap)) {
  runtime::check_rounding(model, needs);
  if (needs.serves && !exchanger->can_serve())
    usage_error(
        "{} cannot run over a process group: its members make all operations in one order, and who "
        "serves must answer out of it; leave the process group out, or use ds-sync",
        running.strategy.spec);
  const bool senses = agreed.sensing_window > 0;
  exchanger->open({.session = agreed.session,
                   .programs = programs_of(this->strategy(), agreed.world, plan),
                   .needs = needs,
                   .world = agreed.world,
                   .senses = senses,
                   .recorder = recorder});
  if (options.resume.empty()) {
    if (options.broadcast) broadcast_model();
    start_lasting(options.broadcast);
    serve();
    begin_step(0);
  } else {
    const auto flights = runtime::restore(options.resume, exchanger->rank(), agreed.step, values);
    serve();
    begin_step(agreed.step);
    for (const runtime::FlightPtr& flight : flights) steps.resume(flight);
  }
  runtime::Watched& self = *this;
  if (senses && !needs.outer && !needs.serves)
    sensing.emplace(*exchanger, recorder, self, agreed.sensing_window);
}

Session::State::~State() {
  if (options.profile && !steps.profile().is_complete()) try {
      write_profile();
    } catch (const std::exception& error) {
      fmt::print(stderr, "riffle: {}\n", error.what());
    }
  exchanger->end(step());
}

int Session::State::checked(int parameter) const {
  if (parameter < 0 || parameter >= static_cast<int>(model.parameters.size()))
    usage_error("parameter {}: there are {}", parameter, model.parameters.size());
  return parameter;
}

runtime::Identity Session::State::identity() const {
  return {asked, model, exchanger->rank(), exchanger->ranks().size()};
}

void Session::State::broadcast_model() {
  if (agreed.world.size() == 1) return;
  for (std::size_t i = 0; i < values.tensors(); ++i) exchanger->broadcast(values.tensor(i));
}

// `equal`: the weights of all ranks are.
void Session::State::start_lasting(bool equal) {
  values.start_lasting();
  if (equal || !(needs.rounds_weights || needs.serves)) return;
  for (const TensorView& each : values.shared()) exchanger->broadcast(each);
}

// Every step serves the same (schedule::needs_of).
void Session::State::serve() {
  if (needs.serves)
    exchanger->serve(values.served(schedule::program_of(strategy(), 0, agreed.world, buckets()),
                                   exchanger->rank()));
}

void Session::State::gather_served() {
  if (!needs.serves) return;
  exchanger->gather_served([this](const Exchange& exchange) { return values.memory_of(exchange); });
}

void Session::State::begin_step(Step step, bool forward) {
  left = leaving;
  Program program;
  if (agreed.world.size() > 1)
    program = schedule::program_of(strategy(), step, agreed.world, buckets());
  if (!postpones()) program = schedule::without_postponing(std::move(program));
  steps.begin(step, program, *cost, forward);
}

void Session::State::end_step() {
  exchanger->throw_if_failed();
  const bool was_complete = steps.profile().is_complete();
  steps.step_done();
  if (options.profile && !was_complete && steps.profile().is_complete()) write_profile();
  exchanger->throw_if_failed();
  recorder.end_step();
  overlap.end_step();
  begin_step(step() + 1);
  if (sensing) sensing->look();
  if (next && !next->moves) (void)change();
}

// ---- gradients as the update will see them

double Session::State::gradient_norm() {
  if (!needs.gradients)
    usage_error("the gradients of {} are the adapter's own", running.strategy.spec);
  double whole = 0;
  double shared = 0;
  bool is_shared = false;
  steps.for_each_gradient([&](TensorView gradients, bool scattered) {
    (scattered ? shared : whole) += exchanger->memory().square_sum(gradients);
  });
  for (int b = 0; b < steps.machine().buckets(); ++b)
    is_shared |= steps.machine().scattered(b) != nullptr;
  if (is_shared) exchanger->all_reduce(std::span(&shared, 1), Reduction::sum);
  return std::sqrt(whole + shared);
}

void Session::State::scale_gradients(double factor) {
  if (!needs.gradients)
    usage_error("the gradients of {} are the adapter's own", running.strategy.spec);
  steps.for_each_gradient(
      [&](TensorView gradients, bool /*scattered*/) { values.scale(gradients, factor); });
}

// ---- the whole model

std::size_t Session::State::first_to_average() const {
  // What is served was gathered just before.
  const bool equal = strategy().traits_with(agreed.world, buckets()).exact || needs.serves;
  return equal ? model.parameters.size() : 0;
}

void Session::State::finish() {
  exchanger->throw_if_failed();
  steps.settle();
  // Delta rules keep the mean with or without their merge; an interpolation with old values would
  // only lose steps.
  for (const runtime::FlightPtr& flight : steps.delayed()) steps.drop(*flight);
  exchanger->meet(step());
  gather_served();
  if (agreed.world.size() > 1) average_over_workers();
}

void Session::State::average_over_workers() {
  runtime::for_each_average(
      *exchanger, values, first_to_average(),
      [&](const runtime::Averaged& each) { exchanger->memory().copy(each.own, each.average); });
}

void Session::State::averaged(std::span<std::byte* const> into) {
  if (into.size() != values.tensors())
    usage_error("averaged: {} places for {} parameters and buffers", into.size(), values.tensors());
  exchanger->throw_if_failed();
  steps.settle();
  gather_served();
  const auto write = [&](std::size_t tensor, std::size_t offset, TensorView from) {
    if (into[tensor] == nullptr) return;
    const TensorView whole{into[tensor], offset + from.count, from.dtype};
    exchanger->memory().copy(runtime::part_of(whole, offset, from.count), from);
  };
  const std::size_t first = first_to_average();
  for (std::size_t tensor = 0; tensor < first; ++tensor) write(tensor, 0, values.tensor(tensor));
  runtime::for_each_average(*exchanger, values, first, [&](const runtime::Averaged& each) {
    write(each.tensor, each.offset, each.average);
  });
}

double Session::State::consensus_distance() {
  exchanger->throw_if_failed();
  steps.settle();
  const double distance = runtime::consensus_distance(*exchanger, values, model.parameters.size());
  recorder.consensus(distance);
  return distance;
}

std::vector<std::byte> Session::State::save() {
  exchanger->throw_if_failed();
  steps.settle();
  gather_served();
  runtime::Agreement saved = agreed;
  // What waits for its step is decided anew.
  saved.measured &= !next || next->world.has_value();
  return runtime::write_checkpoint(identity(), saved, running, step(), values, steps.delayed());
}

// ---- what was measured, what was planned

Trace Session::State::trace() const {
  return options.trace ? agreed.trace : steps.profile().measured(agreed.trace);
}

void Session::State::write_profile() {
  const bool decides = exchanger->rank() == exchanger->ranks().ranks().front();
  if (options.profile->file.empty() || !decides || steps.profile().is_empty()) return;
  write_file(options.profile->file, to_json(steps.profile().measured(agreed.trace)));
}

std::optional<Plan> Session::State::measured_plan() const {
  std::optional<Plan> told = running.plan;
  if (!told) return told;
  std::map<std::string, Seconds> measured = measured_steps;
  if (const auto now = recorder.lap()) measured[running.strategy.spec] = *now;
  for (Candidate& each : told->candidates)
    if (const auto found = measured.find(each.spec); found != measured.end())
      each.measured = found->second;
  return told;
}

NamedStrategy Session::State::make_plan(const Trace& on, const World& in) {
  runtime::Running planned = runtime::plan_running(*exchanger, *options.automatic, running.strategy,
                                                   on, in, agreed.overlap);
  const std::string& spec = planned.strategy.spec;
  const Candidate& chosen = *std::ranges::find(planned.plan->candidates, spec, &Candidate::spec);
  log(fmt::format("auto {} {}", spec == running.strategy.spec ? "stays with" : "takes",
                  explain_choice(*planned.plan, chosen, *options.automatic)));
  running.plan = std::move(planned.plan);
  return std::move(planned.strategy);
}

// ---- other buckets, another strategy, another world

bool Session::State::relayout() {
  if (!agreed.measured && !next && steps.profile().is_enough()) look_at_measured();
  return change();
}

bool Session::State::change() {
  if (!next || step() < next->from) return false;
  const bool is_other = next->strategy.spec != running.strategy.spec;
  if (is_other && postpones()) leaving = true;
  for (int b = 0; leaving && b < steps.machine().buckets(); ++b)
    if (steps.machine().is_postponed(b)) return false;  // after the next step
  leaving = false;
  const Next then = *std::exchange(next, std::nullopt);
  bool changed = true;
  if (!then.moves) {
    changed = change_world(*then.world);
  } else {
    const World before = agreed.world;
    if (then.world) set_world(*then.world);
    changed = change_to(then.strategy, then.trace, then.buckets);
    if (!changed) set_world(before);
  }
  if (!then.why.empty())
    log(then.why + (changed ? "" : "; the schedule stays: other things would be exchanged"));
  return changed && then.moves;
}

// What the first steps showed, as rank 0 saw it.
void Session::State::look_at_measured() {
  agreed.measured = true;
  const bool plans = options.automatic && !running.plan;
  if (agreed.world.size() == 1 || (options.trace && !plans)) return;
  if (needs.serves) return;  // owners keep their slices
  Trace trace =
      trace_from_json(runtime::broadcast(*exchanger, to_json(this->trace())), "rank 0's times");
  NamedStrategy then = plans ? make_plan(trace, agreed.world) : running.strategy;
  BucketPlan others = buckets_for(then, trace, agreed.world);
  // Where the buckets stay, times may still change what a strategy does with them.
  const bool is_other = then.spec != running.strategy.spec;
  if (!is_other && cut_alike(others, buckets()) &&
      programs_of(strategy(), agreed.world, others) ==
          programs_of(strategy(), agreed.world, buckets())) {
    agreed.trace = std::move(trace);
    return;
  }
  const auto quiet = schedule::quiet_step(strategy(), agreed.world, buckets(), step());
  // A strategy that always has something on its way keeps its buckets.
  if (quiet || is_other)
    next = {quiet.value_or(step()), std::move(then), std::move(trace), std::move(others)};
}

// Weights move with their tensors, and gradients where their update is still to be made; other
// gradients have been used. What is delayed is merged now, by the old buckets.
bool Session::State::change_to(NamedStrategy then, Trace on, BucketPlan others) {
  int postponed = 0;
  for (int b = 0; b < steps.machine().buckets(); ++b) {
    postponed += steps.machine().is_postponed(b) ? 1 : 0;
    (void)steps.before_forward(b);
  }
  const bool is_other = then.spec != running.strategy.spec;
  if (needs.outer || (postponed != 0 && (is_other || postponed != steps.machine().buckets())))
    return false;
  steps.merge_delayed();
  exchanger->forget_planned();
  const Step now = step();
  const bool was_exact = first_to_average() > 0;
  if (is_other)
    if (const auto took = recorder.lap()) measured_steps[running.strategy.spec] = *took;
  running.strategy = std::move(then);
  agreed.trace = std::move(on);
  const auto programs = programs_of(strategy(), agreed.world, others);
  const bool kept = needs.weights;
  needs = schedule::needs_of(programs);
  needs.weights |= kept;
  values.move_to(std::move(others), needs, postponed != 0);
  if (is_other) {
    start_lasting(false);
    overlap = schedule::Overlap(needs, mode_of(options.overlap));
    // Exact strategies keep workers equal that are so; they do not make them equal.
    if (!was_exact && first_to_average() > 0) average_over_workers();
    recorder.begin_lap();
  }
  exchanger->change(agreed.world, programs);
  steps.reset(postponed != 0);
  begin_step(now, true);
  if (sensing) sensing->restart();
  return true;
}

bool Session::State::is_under_way(Step at, int lane) const {
  return steps.is_under_way(at, lane);
}

void Session::State::come_to_rest() {
  for (int b = 0; b < steps.machine().buckets(); ++b) (void)steps.before_forward(b);
  (void)steps.delayed();
}

void Session::State::set_world(World to) {
  agreed.world = std::move(to);
  cost.emplace(agreed.world.cluster);
}

bool Session::State::change_world(World changed) {
  if (needs.serves) return false;
  const schedule::Needs now = needs_of(strategy(), changed, buckets());
  if (now.gradients != needs.gradients || now.outer || (now.state && !needs.state)) return false;
  come_to_rest();
  exchanger->forget_planned();
  set_world(std::move(changed));
  exchanger->change(agreed.world, programs_of(strategy(), agreed.world, buckets()));
  begin_step(step(), true);
  if (sensing) sensing->restart();
  return true;
}

BucketPlan Session::State::buckets_for(const NamedStrategy& strategy, const Trace& on,
                                       const World& in) const {
  return runtime::Layout(model, strategy->buckets(runtime::overlapped(on, agreed.overlap),
                                                  CostModel(in.cluster), in))
      .buckets;
}

void Session::State::plan_again(Cluster cluster, double tempo, const std::string& why) {
  World changed(std::move(cluster), agreed.world.membership);
  // Times that were given stay as they are.
  Trace trace = options.trace ? agreed.trace : runtime::overlapped(agreed.trace, tempo);
  Next then{.from = step(),
            .strategy = running.plan ? make_plan(trace, changed) : running.strategy,
            .trace = std::move(trace),
            .buckets = {},
            .world = std::move(changed)};
  then.buckets = buckets_for(then.strategy, then.trace, *then.world);
  const bool is_other = then.strategy.spec != running.strategy.spec;
  const auto quiet = schedule::quiet_step(strategy(), agreed.world, buckets(), step());
  // A strategy that always has something on its way keeps its buckets and changes at once: what is
  // late is a correction, which adds up with any other.
  if (!quiet && !is_other && !needs.gradients) then.buckets = buckets();
  then.moves = is_other || !cut_alike(then.buckets, buckets());
  then.from = quiet.value_or(step());
  then.why = fmt::format("{}; {}", why, compare(then));
  next = std::move(then);
}

// What the change is, and what it is predicted to bring: told by the lowest rank.
std::string Session::State::compare(const Next& with) {
  std::string told;
  if (exchanger->rank() == exchanger->ranks().ranks().front()) {
    const Trace hidden = runtime::overlapped(with.trace, agreed.overlap);
    const Cluster& now = with.world->cluster;
    const Seconds stays =
        simulate(hidden, now, running.strategy, {.planned = agreed.world.cluster}).iteration;
    const Seconds then = simulate(hidden, now, with.strategy).iteration;
    told = fmt::format("predicted {} a step instead of {}", print(then), print(stays));
  }
  told = runtime::broadcast(*exchanger, std::move(told));
  const Traits traits = with.strategy->traits_with(*with.world, with.buckets);
  return fmt::format("now {} on {}, {} bucket{}, a period of {} step{}, delay {}; {}",
                     with.strategy.spec, model::summary(with.world->cluster), with.buckets.size(),
                     with.buckets.size() == 1 ? "" : "s", traits.period,
                     traits.period == 1 ? "" : "s", traits.staleness, told);
}

void Session::State::log(std::string what) {
  if (exchanger->rank() == exchanger->ranks().ranks().front()) {
    const std::string line = fmt::format("step {}: {}", step(), what);
    if (options.log)
      options.log(line);
    else
      fmt::print(stderr, "riffle: {}\n", line);
  }
  sensed.push_back({step(), std::move(what)});
}

}  // namespace riffle
