// Timelines as Chrome JSON.
#include "property.h"
#include "riffle/timeline.h"

using namespace riffle;  // NOLINT(google-build-using-namespace): a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  const auto timeline = fuzz::parsed([&] { return timeline_from_json(text, "timeline.json"); });
  if (!timeline) return 0;
  for (const Event& event : timeline->events)
    fuzz::require(!print(event).empty(), "an event prints");
  const std::string json = to_json(*timeline);
  fuzz::require(timeline_from_json(json, "again") == *timeline, "a timeline reads back", json);
  return 0;
}
