#include "riffle/verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "riffle/error.h"
#include "schedule/schedule.h"
#include "verify/checks.h"

namespace riffle {
namespace {

using verifier::Schedule;

// Enough draws to see groups change, however long they stay the same; whole rounds.
std::vector<Program> sample(const Strategy& strategy, const World& world,
                            const BucketPlan& buckets) {
  constexpr Step kUsual = 128;
  constexpr Step kLongest = 4096;
  const Step round = strategy.traits_with(world, buckets).round;
  const auto is_enough = [&](Step steps, int changes) {
    return steps % round == 0 && (steps >= std::max(kLongest, 4 * round) || changes >= 24 ||
                                  (steps >= kUsual && changes >= 3));
  };
  std::vector<Program> programs;
  int changes = 0;
  for (Step step = 0; !is_enough(step, changes); ++step) {
    programs.push_back(schedule::program_of(strategy, step, world, buckets));
    if (step > 0 && programs.back() != programs[step - 1]) ++changes;
  }
  return programs;
}

void check_period(const Strategy& strategy, const World& world, const Schedule& schedule,
                  std::vector<Problem>& problems) {
  for (Step step = 0; step < schedule.length(); ++step) {
    const Step again = step + schedule.length();
    if (schedule::program_of(strategy, again, world, schedule.buckets) == schedule.at(step))
      continue;
    verifier::add(problems, {Problem::Check::period, again, -1, schedule.ranks,
                             fmt::format("the program is not that of step {}, as the stated "
                                         "period of {} says",
                                         step, schedule.length())});
  }
}

Verification check(const Schedule& schedule, const World& world) {
  using namespace verifier;
  Verification result;
  result.workers = world.size();
  check_form(schedule, result.problems);
  if (!result.problems.empty()) {
    result.partition = false;
    result.deadlock_free = false;
    result.mean_preserved = false;
    return result;
  }
  const auto none = [&](Problem::Check kind) {
    return std::ranges::find(result.problems, kind, &Problem::check) == result.problems.end();
  };
  check_partition(schedule, result.problems);
  result.partition = none(Problem::Check::partition);
  check_lifetime(schedule, result.problems);
  check_deadlock(schedule, result.problems);
  result.deadlock_free = none(Problem::Check::deadlock);
  check_mean(schedule, result);
  check_mixing(schedule, result);
  check_traffic(schedule, world, result.problems);
  check_rounding(schedule, result);
  check_serving(schedule, result);
  if (schedule.periodic) result.period = static_cast<int>(schedule.length());
  return result;
}

}  // namespace

Verification verify(const std::vector<Program>& programs, bool periodic, const World& world,
                    const BucketPlan& buckets) {
  if (programs.empty()) usage_error("verify: no program");
  return check(Schedule(programs, periodic, world.ranks(), buckets), world);
}

Verification verify(const NamedStrategy& strategy, const World& world, const Trace& trace) {
  const CostModel cost(world.cluster);
  const BucketPlan buckets = strategy->buckets(trace, cost, world);
  const Traits traits = strategy->traits_with(world, buckets);
  const bool periodic = traits.period > 0;
  std::vector<Program> programs = periodic
                                      ? schedule::programs_of(*strategy.strategy, world, buckets)
                                      : sample(*strategy.strategy, world, buckets);
  const Schedule schedule(std::move(programs), periodic, world.ranks(), buckets);
  Verification result = check(schedule, world);
  result.strategy = strategy.spec;
  if (periodic) check_period(*strategy.strategy, world, schedule, result.problems);
  return result;
}

}  // namespace riffle
