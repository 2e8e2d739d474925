#include "race/compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "race/race.h"
#include "riffle/error.h"
#include "simulate/report.h"

namespace riffle::race {
namespace {

Times::Entry simulated(const JsonReader& from) {
  const Simulation simulation = read_simulation(from);
  return {.contender = simulation.strategy,
          .options = simulation.options,
          .seconds_per_step = simulation.iteration.count()};
}

// A strategy of one file and a spec of the other with the same options, given or not.
bool is_spelled(const Times::Entry& simulated, const Times::Entry& spec) {
  if (simulated.options.empty() || !spec.contender.starts_with(simulated.contender)) return false;
  try {
    const NamedStrategy made = StrategyTable::builtin().make(spec.contender);
    return made.name == simulated.contender && made.options == simulated.options;
  } catch (const UsageError&) {
    return false;  // another library's
  }
}

bool are_alike(const Times::Entry& a, const Times::Entry& b) {
  if (a.options.empty() != b.options.empty()) return is_spelled(a, b) || is_spelled(b, a);
  return a.contender == b.contender && a.options == b.options;
}

Times of_simulations(const JsonReader& from) {
  Times times;
  if (!from.has("results")) {
    times.entries.push_back(simulated(from));
    return times;
  }
  const JsonReader results = from.at("results");
  for (std::size_t i = 0; i < results.size(); ++i)
    times.entries.push_back(simulated(results.at(i)));
  return times;
}

Times of_race(const Race& race) {
  Times times{.has_target = race.by_target(), .entries = {}};
  for (const Result& result : race.results) {
    Times::Entry entry{.contender = result.contender, .note = result.failed};
    if (result.failed.empty()) {
      entry.seconds_per_step = result.seconds_per_step;
      entry.seconds_to_target = result.seconds_to_target;
    }
    times.entries.push_back(std::move(entry));
  }
  return times;
}

using Field = std::optional<double> Times::Entry::*;

void set_ranks(std::vector<Compared>& contenders, Compared::Side Compared::* side) {
  std::vector<Compared*> order;
  for (Compared& each : contenders)
    if (each.first.seconds && each.second.seconds) order.push_back(&each);
  std::ranges::stable_sort(order, {}, [&](const Compared* each) { return *(each->*side).seconds; });
  for (std::size_t i = 0; i < order.size(); ++i) (order[i]->*side).rank = static_cast<int>(i) + 1;
}

std::string note_of(const Times::Entry& entry, Field field) {
  if (entry.*field) return "";
  return entry.note.empty() ? "not reached" : "failed";
}

}  // namespace

std::optional<double> Compared::ratio() const {
  if (!first.seconds || !second.seconds || *first.seconds <= 0) return std::nullopt;
  return *second.seconds / *first.seconds;
}

int Compared::moved() const {
  return first.rank == 0 || second.rank == 0 ? 0 : first.rank - second.rank;
}

Times read_times(std::string_view text, std::string_view source) {
  const Json json = parse_json(text, source);
  const JsonReader reader(json, std::string(source));
  if (json.is_object() && !json.contains("riffle") &&
      (json.contains("iteration_seconds") || json.contains("results")))
    return of_simulations(reader);
  return of_race(race_from_json(text, source));
}

Comparison compare(const Times& first, const Times& second) {
  const bool by_target = first.has_target && second.has_target;
  const Field field =
      by_target ? &Times::Entry::seconds_to_target : &Times::Entry::seconds_per_step;
  Comparison found{.what = by_target ? "time to the target accuracy" : "time per step",
                   .contenders = {}};
  for (const Times::Entry& one : first.entries) {
    const auto other = std::ranges::find_if(
        second.entries, [&](const Times::Entry& each) { return are_alike(one, each); });
    if (other == second.entries.end()) continue;
    found.contenders.push_back({.contender = one.options.empty() ? one.contender : other->contender,
                                .first = {one.*field, 0, note_of(one, field)},
                                .second = {(*other).*field, 0, note_of(*other, field)}});
  }
  if (found.contenders.empty()) usage_error("the two files have no contender in common");
  set_ranks(found.contenders, &Compared::first);
  set_ranks(found.contenders, &Compared::second);
  return found;
}

std::string to_json(const Comparison& comparison) {
  Json json{{"what", comparison.what}, {"contenders", Json::array()}};
  const auto side = [](const Compared::Side& from) {
    return Json{{"seconds", from.seconds ? Json(*from.seconds) : Json()},
                {"rank", from.rank > 0 ? Json(from.rank) : Json()}};
  };
  for (const Compared& each : comparison.contenders) {
    const auto ratio = each.ratio();
    json["contenders"].push_back(Json{{"contender", each.contender},
                                      {"first", side(each.first)},
                                      {"second", side(each.second)},
                                      {"ratio", ratio ? Json(*ratio) : Json()}});
  }
  return json.dump(1) + "\n";
}

}  // namespace riffle::race
