#include "schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "riffle/error.h"
#include "schedule/period.h"

namespace riffle::schedule {
namespace {

bool is_outer(const Exchange& exchange) {
  return exchange.merge.kind == Merge::Kind::outer;
}

Exchange of_buffers(const Exchange& weights) {
  Exchange exchange = weights;
  exchange.payload = Payload::buffers;
  exchange.wire = Wire::f32;
  exchange.feedback = true;
  exchange.scales.clear();
  if (is_outer(weights)) exchange.merge = weights.merge.xi == 0 ? replace() : mix(weights.merge.xi);
  if (weights.merge.kind == Merge::Kind::correct) exchange.merge = correct();
  return exchange;
}

// Whether all exchanges of weights of which `counts` tells so are all-reduces of the same workers,
// one after the other.
template <typename Counts>
bool all_in_one_group(const std::vector<Program>& programs, const Counts& counts) {
  const Exchange* first = nullptr;
  for (const Program& program : programs)
    for (const Exchange& exchange : program.exchanges) {
      if (exchange.payload != Payload::weight || exchange.group.size() < 2 || !counts(exchange))
        continue;
      if (first == nullptr) first = &exchange;
      if (exchange.group != first->group || exchange.lane != first->lane ||
          exchange.collective != Collective::all_reduce)
        return false;
    }
  return first != nullptr;
}

// Owners hold their slices from the first step to the last.
std::vector<Exchange> served_by(const Program& program) {
  std::vector<Exchange> served;
  for (const Exchange& exchange : program.exchanges)
    if (exchange.collective == Collective::serve) served.push_back(exchange);
  return served;
}

void check_served(const std::vector<Program>& programs) {
  for (const Program& program : programs) {
    const std::vector<Exchange> served = served_by(program);
    if (served != served_by(programs.front()))
      usage_error("cannot serve other values in other steps");
    for (const Exchange& exchange : served)
      if (std::ranges::count_if(served, [&](const Exchange& other) {
            return other.bucket == exchange.bucket && other.payload == exchange.payload &&
                   std::ranges::any_of(other.group,
                                       [&](Rank rank) { return exchange.group.contains(rank); });
          }) > 1)
        usage_error("cannot run the exchange \"{}\": its value is served twice in a step",
                    print(exchange));
  }
}

}  // namespace

Program program_of(const Strategy& strategy, Step step, const World& world,
                   const BucketPlan& buckets) {
  Program program = strategy.program(step, world, buckets);
  const auto carries = [&](const Exchange& exchange) {
    return exchange.payload == Payload::weight &&
           buckets.at(static_cast<std::size_t>(exchange.bucket)).buffers.count > 0;
  };
  if (std::ranges::none_of(program.exchanges, carries)) return program;
  Program whole;
  for (const Exchange& exchange : program.exchanges) {
    whole.add(exchange);
    if (carries(exchange)) whole.add(of_buffers(exchange));
  }
  return whole;
}

Program without_postponing(Program program) {
  for (Exchange& exchange : program.exchanges) {
    if (!postpones(exchange)) continue;
    if (point_of(exchange.start) > Point::backward_done) exchange.start = Start::backward_done;
    exchange.due = before_step();
  }
  return program;
}

std::vector<Program> programs_of(const Strategy& strategy, const World& world,
                                 const BucketPlan& buckets, Step most) {
  constexpr Step kDraws = 8;
  const Traits traits = strategy.traits_with(world, buckets);
  const Step all = traits.period > 0 ? traits.period : kDraws * traits.round;
  std::vector<Program> programs;
  for (Step step = 0; step < std::min(all, most); ++step)
    programs.push_back(program_of(strategy, traits.warm_up + step, world, buckets));
  return programs;
}

std::optional<Step> quiet_step(const Strategy& strategy, const World& world,
                               const BucketPlan& buckets, Step now) {
  const Traits traits = strategy.traits_with(world, buckets);
  const auto is_quiet = [&](Step candidate) {
    const Moment by = moment(candidate, Point::before_forward);
    for (Step begun = std::max<Step>(candidate - traits.staleness - 1, 0); begun < candidate;
         ++begun)
      for (const Exchange& each : strategy.program(begun, world, buckets).exchanges)
        if (merged(each, begun) > by) return false;
    return true;
  };
  for (Step candidate = now; candidate <= now + traits.staleness + 1; ++candidate)
    if (is_quiet(candidate)) return candidate;
  return std::nullopt;
}

Needs needs_of(const std::vector<Program>& programs) {
  const auto refuse = [](const Exchange& exchange, const std::string& why) {
    if (!why.empty()) usage_error("cannot run the exchange \"{}\": {}", print(exchange), why);
  };
  check_served(programs);
  Needs needs;
  for (const Program& program : programs) {
    const auto waits = waits_of(program);
    for (std::size_t i = 0; i < waits.size(); ++i)
      for (const int earlier : waits[i])
        refuse(program.exchanges[i], refusal(program.exchanges[earlier], program.exchanges[i]));
    for (std::size_t i = 0; i < program.exchanges.size(); ++i) {
      const Exchange& exchange = program.exchanges[i];
      refuse(exchange, refusal(exchange));
      refuse(exchange, refusal_of_factor(program, i));
      if (exchange.group.size() < 2) continue;
      needs.gradients |= exchange.payload == Payload::gradient;
      needs.weights |= exchange.payload == Payload::weight;
      needs.buffers |= exchange.payload == Payload::buffers;
      needs.state |= exchange.payload == Payload::state;
      needs.outer |= is_outer(exchange);
      needs.lanes = std::max(needs.lanes, exchange.lane + 1);
      needs.forward |= exchange.due.point == DuePoint::before_forward;
      needs.ready |= point_of(exchange.start) < Point::before_step;
      needs.per_bucket |= updates_by_bucket(exchange);
      needs.postpones |= postpones(exchange);
      needs.serves |= exchange.collective == Collective::serve;
      const int rank = exchange.low_rank.rank;
      if (rank > 0 && needs.rank > 0 && rank != needs.rank)
        refuse(exchange, fmt::format("others have factors of rank {}", needs.rank));
      needs.rank = std::max(needs.rank, rank);
      if (exchange.wire == Wire::f32) continue;
      needs.rounds_gradients |= exchange.payload == Payload::gradient;
      needs.rounds_weights |= exchange.payload == Payload::weight;
    }
  }
  needs.agrees = needs.outer && all_in_one_group(programs, is_outer);
  for (const Program& program : programs)
    for (const Exchange& exchange : program.exchanges)
      needs.keeps_reference |= exchange.wire != Wire::f32 && exchange.payload == Payload::weight &&
                               exchange.group.size() > 1 && !(needs.agrees && is_outer(exchange));
  needs.one_reference = needs.keeps_reference && !needs.outer &&
                        all_in_one_group(programs, [](const Exchange&) { return true; });
  return needs;
}

}  // namespace riffle::schedule
