// An exchange must make sense by itself before anything can be proved of it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "verify/checks.h"

namespace riffle::verifier {
namespace {

std::string bad_members(const Exchange& exchange, const Group& live) {
  if (exchange.group.empty()) return "the group is empty";
  for (const Rank rank : exchange.group)
    if (!live.contains(rank)) return fmt::format("rank {} is not alive", rank);
  return {};
}

std::string bad_numbers(const Exchange& exchange) {
  const auto size = static_cast<std::size_t>(exchange.group.size());
  if (!exchange.weights.empty() && exchange.weights.size() != size)
    return fmt::format("{} weights for {} members", exchange.weights.size(), size);
  if (std::ranges::any_of(exchange.weights, [](double w) { return !(w > 0) || std::isinf(w); }))
    return "a weight is not above zero";
  if (!exchange.scales.empty() && exchange.scales.size() != size)
    return fmt::format("{} scales for {} members", exchange.scales.size(), size);
  if (!exchange.scales.empty() && exchange.merge.kind != Merge::Kind::correct)
    return "scales without the merge correct";
  const bool mixes =
      exchange.merge.kind == Merge::Kind::mix || exchange.merge.kind == Merge::Kind::outer;
  if (mixes && !(exchange.merge.xi >= 0 && exchange.merge.xi < 1))
    return fmt::format("a local share of {} is not from 0 to below 1", exchange.merge.xi);
  return {};
}

std::string bad_times(const Instance& at) {
  const Exchange& exchange = *at.exchange;
  if (at.merged <= at.taken)
    return fmt::format("due {} +{}, which is not after its start {}", name_of(exchange.due.point),
                       exchange.due.steps, name_of(exchange.start));
  const bool gathers = exchange.collective == Collective::all_gather;
  if (exchange.payload == Payload::gradient && !gathers &&
      schedule::point_of(exchange.start) > Point::update)
    return fmt::format("a gradient that starts at {} was used already", name_of(exchange.start));
  return {};
}

// Chains that are in flight; of programs that make sense otherwise.
void check_chains(const Program& program, Step step, std::vector<Problem>& problems) {
  const auto waits = schedule::waits_of(program);
  for (std::size_t i = 0; i < waits.size(); ++i)
    for (const int earlier : waits[i]) {
      const Exchange& exchange = program.exchanges[i];
      std::string what = schedule::refusal(program.exchanges[earlier], exchange);
      if (!what.empty())
        add(problems, problem(Problem::Check::form, instance(exchange, step), std::move(what)));
    }
}

}  // namespace

void check_form(const Schedule& schedule, std::vector<Problem>& problems) {
  for (Step step = 0; step < schedule.length(); ++step)
    for (const Exchange& exchange : schedule.at(step).exchanges) {
      const Instance at = instance(exchange, step);
      std::string what = bad_members(exchange, schedule.ranks);
      if (what.empty() &&
          (exchange.bucket < 0 || exchange.bucket >= static_cast<int>(schedule.buckets.size())))
        what = fmt::format("there is no bucket {}", exchange.bucket);
      if (what.empty()) what = bad_numbers(exchange);
      if (what.empty()) what = bad_times(at);
      const bool serves = exchange.collective == Collective::serve || exchange.ahead >= 0;
      if (what.empty() && (serves || exchange.merge.kind == Merge::Kind::outer))
        what = schedule::refusal(exchange);
      if (!what.empty()) add(problems, problem(Problem::Check::form, at, std::move(what)));
    }
  for (Step step = 0; problems.empty() && step < schedule.length(); ++step)
    check_chains(schedule.at(step), step, problems);
}

}  // namespace riffle::verifier
