#include "race_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "riffle/units.h"

namespace riffle::cli {
namespace {

std::string time(const std::optional<double>& seconds) {
  return seconds ? print(Seconds(*seconds)) : "-";
}

std::string percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f} %", 100 * *share) : "-";
}

// Of the prediction, against what was measured.
std::string error(const race::Result& result) {
  if (!result.predicted || !result.seconds_per_step) return "-";
  return fmt::format("{:+.1f} %",
                     100 * (result.predicted->seconds_per_step / *result.seconds_per_step - 1));
}

}  // namespace

report::Table ranking_table(const race::Race& race) {
  const bool by_target = race.by_target();
  report::Table table{{{""}, {"contender", false}}, {}};
  if (by_target)
    table.columns.push_back({fmt::format("to {:g} %", std::round(1000 * *race.target) / 10)});
  for (const char* column : {"speed-up", "step", "predicted", "error", "exposed"})
    table.columns.push_back({column});
  if (!race.task.empty()) table.columns.push_back({"accuracy"});
  for (const race::Result* result : in_order(race)) {
    std::vector<std::string> row{result->rank > 0 ? std::to_string(result->rank) : "",
                                 result->contender};
    const bool good = result->failed.empty();
    if (by_target) row.push_back(good ? time(result->seconds_to_target) : "failed");
    row.push_back(result->speedup ? fmt::format("{:.2f}x", *result->speedup)
                  : good          ? "-"
                                  : "failed");
    row.push_back(time(result->seconds_per_step));
    row.push_back(result->predicted ? time(result->predicted->seconds_per_step) : "-");
    row.push_back(error(*result));
    row.push_back(time(result->exposed));
    if (!race.task.empty()) row.push_back(percent(result->accuracy));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string race_notes(const race::Race& race) {
  std::string text;
  for (const race::Result& result : race.results)
    if (!result.failed.empty())
      text += fmt::format("{} failed: {}\n", result.contender, result.failed);
  // Contenders that were run alike share a line.
  std::vector<std::pair<std::string, std::string>> lines;
  for (const race::Result& result : race.results) {
    if (result.how.empty()) continue;
    const auto same =
        std::ranges::find(lines, result.how, &std::pair<std::string, std::string>::second);
    if (same == lines.end())
      lines.emplace_back(result.contender, result.how);
    else
      same->first += ", " + result.contender;
  }
  for (const auto& [names, how] : lines) text += fmt::format("{}: {}\n", names, how);
  return text;
}

report::Table prediction_table(const race::Race& race) {
  report::Table table{{{"contender", false}, {"step"}, {"compute"}, {"exposed"}}, {}};
  std::vector<const race::Result*> order;
  for (const race::Result& result : race.results)
    if (result.predicted) order.push_back(&result);
  std::ranges::stable_sort(
      order, {}, [](const race::Result* result) { return result->predicted->seconds_per_step; });
  for (const race::Result* result : order)
    table.rows.push_back({result->contender, time(result->predicted->seconds_per_step),
                          time(result->predicted->compute), time(result->predicted->exposed)});
  return table;
}

}  // namespace riffle::cli
