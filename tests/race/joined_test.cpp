// Timelines of all ranks become one.
#include "race/joined.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "riffle/timeline.h"
#include "temporary_folder.h"

namespace riffle::race {
namespace {

Event event(EventKind kind, const std::string& name, Step step, double start, double end,
            Rank rank = 0) {
  return {kind, name, rank, 0, step, Seconds(start), Seconds(end), {}};
}

TEST(Joined, IsOnOneClockOfTheTrueCluster) {
  const TemporaryFolder folder;
  for (const int rank : {0, 1}) {
    Timeline own{{event(EventKind::forward, "a", 0, 100 + rank, 104 + rank, rank)}};
    const auto file = folder.file(fmt::format("t{}.json", rank), to_json(own));
    static_cast<void>(
        folder.file(fmt::format("rank{}.jsonl", rank),
                    fmt::format(R"({{"end": "steps", "timeline": "{}"}})", file.string()) + "\n"));
  }
  Reports reports(folder.path(), 2);
  reports.read();
  const Timeline all = joined(reports, 2);
  ASSERT_EQ(all.events.size(), 2U);
  EXPECT_EQ(all.events[0].start, Seconds(0));
  EXPECT_EQ(all.events[0].end, Seconds(2));
  EXPECT_EQ(all.events[1].start, Seconds(0.5));
}

}  // namespace
}  // namespace riffle::race
