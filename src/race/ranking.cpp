#include <algorithm>
#include <limits>
#include <tuple>

#include "race/race.h"

namespace riffle::race {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

// Less is better.
std::tuple<bool, double, double, double> place(const Result& result, bool by_target) {
  const double step = result.seconds_per_step.value_or(never);
  if (!by_target) return {!result.failed.empty(), 0, 0, step};
  return {!result.failed.empty(), result.seconds_to_target.value_or(never),
          -result.accuracy.value_or(0), step};
}

std::optional<double> time_of(const Result& result, bool by_target) {
  if (!result.failed.empty()) return std::nullopt;
  return by_target ? result.seconds_to_target : result.seconds_per_step;
}

}  // namespace

std::vector<const Result*> in_order(const Race& race) {
  std::vector<const Result*> order;
  for (const Result& result : race.results) order.push_back(&result);
  std::ranges::stable_sort(order, {},
                           [&](const Result* result) { return place(*result, race.by_target()); });
  return order;
}

void rank_results(Race& race) {
  int rank = 0;
  for (const Result* each : in_order(race)) {
    Result& result = race.results[static_cast<std::size_t>(each - race.results.data())];
    result.rank = result.failed.empty() ? ++rank : 0;
  }
  if (race.results.empty()) return;
  const auto first = time_of(race.results.front(), race.by_target());
  for (Result& result : race.results) {
    const auto own = time_of(result, race.by_target());
    result.speedup.reset();
    if (first && own && *own > 0) result.speedup = *first / *own;
  }
}

}  // namespace riffle::race
