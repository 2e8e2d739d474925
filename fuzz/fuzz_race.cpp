// race.json, and the lines that ranks of a race write.
#include "property.h"
#include "race/compare.h"
#include "race/race.h"
#include "race/reports.h"

using namespace riffle;  // NOLINT(google-build-using-namespace): a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  race::RankReport whole;
  race::RankReport halves;
  const auto lines = [&](race::RankReport& report, std::string_view part) {
    fuzz::parsed([&] {
      report.feed(part, "rank0.jsonl");
      return true;
    });
  };
  lines(whole, text);
  lines(halves, text.substr(0, size / 2));
  lines(halves, text.substr(size / 2));
  fuzz::require(whole.steps().size() == halves.steps().size(), "torn lines are the same lines");

  fuzz::parsed([&] { return race::read_times(text, "race.json"); });
  auto race = fuzz::parsed([&] { return race::race_from_json(text, "race.json"); });
  if (!race) return 0;
  rank_results(*race);
  const std::string json = to_json(*race);
  fuzz::require(race::race_from_json(json, "again") == *race, "a race reads back", json);
  return 0;
}
