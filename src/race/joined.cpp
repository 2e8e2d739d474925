#include "race/joined.h"

#include <algorithm>
#include <limits>

#include "base/files.h"

namespace riffle::race {

Timeline joined(const Reports& reports, double dilate) {
  Timeline all;
  for (const RankReport& rank : reports.ranks()) {
    if (!rank.end() || rank.end()->timeline.empty()) return {};
    const std::string file = rank.end()->timeline;
    for (Event& event : timeline_from_json(read_file(file), file).events)
      all.events.push_back(std::move(event));
  }
  Seconds first{std::numeric_limits<double>::infinity()};
  for (const Event& event : all.events) first = std::min(first, event.start);
  for (Event& event : all.events) {
    event.start = (event.start - first) / dilate;
    event.end = (event.end - first) / dilate;
  }
  return all;
}

}  // namespace riffle::race
