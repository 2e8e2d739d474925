#include "report/gantt.h"

#include <gmock/gmock.h>

namespace riffle::report {
namespace {

using testing::HasSubstr;
using testing::Not;

Event event(EventKind kind, Rank rank, Step step, double start, double end, int lane = 0) {
  return {.kind = kind,
          .name = "x",
          .rank = rank,
          .lane = lane,
          .step = step,
          .start = Seconds(start),
          .end = Seconds(end),
          .bytes = {}};
}

// 18 columns of labels and 20 of a second each.
const GanttStyle kStyle{.width = 38, .workers = 2, .steps = 1};

TEST(Gantt, ComputingAndLanesSideBySide) {
  const Timeline timeline{
      {event(EventKind::forward, 0, 0, 0, 5), event(EventKind::backward, 0, 0, 5, 15),
       event(EventKind::wait, 0, 0, 15, 18), event(EventKind::optimizer, 0, 0, 18, 20),
       event(EventKind::exchange, 0, 0, 10, 14), event(EventKind::exchange, 0, 0, 14, 18)}};
  EXPECT_EQ(draw_gantt(timeline, kStyle),
            "                  |0 ns\n"
            "worker 0          ░░░░░▓▓▓▓▓▓▓▓▓▓···██\n"
            "  lane 0                    ▆▆▆▆▄▄▄▄\n"
            "                  ░ forward  ▓ backward  █ optimizer  · waits  ▆ exchange  ▄ next  "
            "≡ several\n");
}

TEST(Gantt, ShortExchangesInOneSliceAreSeveral) {
  Timeline timeline{{event(EventKind::forward, 0, 0, 0, 20)}};
  for (int i = 0; i < 4; ++i)
    timeline.events.push_back(event(EventKind::exchange, 0, 0, 3 + i * 0.25, 3.25 + i * 0.25));
  EXPECT_THAT(draw_gantt(timeline, kStyle), HasSubstr("\n  lane 0             ≡\n"));
}

// An exchange that is due much later does not squeeze the steps that are shown, and the steps after
// them are not shown as idle.
TEST(Gantt, TheShownStepsFillTheWidth) {
  const Timeline timeline{{event(EventKind::forward, 0, 3, 100, 120),
                           event(EventKind::exchange, 0, 3, 110, 500, 1),
                           event(EventKind::forward, 0, 4, 120, 140)}};
  EXPECT_EQ(draw_gantt(timeline, kStyle).substr(0, 130),
            std::string("                  |0 ns\n"
                        "worker 0          ░░░░░░░░░░░░░░░░░░░░\n"
                        "  lane 1                    ▆▆▆▆▆▆▆▆▆▆\n")
                .substr(0, 130));
}

TEST(Gantt, OnlyTheFirstWorkers) {
  Timeline timeline;
  for (Rank rank = 0; rank < 5; ++rank)
    timeline.events.push_back(event(EventKind::forward, rank, 0, 0, 20));
  const std::string drawn = draw_gantt(timeline, kStyle);
  EXPECT_THAT(drawn, HasSubstr("worker 1"));
  EXPECT_THAT(drawn, Not(HasSubstr("worker 2")));
}

TEST(Gantt, ColourOnlyWhenAsked) {
  const Timeline timeline{{event(EventKind::forward, 0, 0, 0, 20)}};
  EXPECT_THAT(draw_gantt(timeline, kStyle), Not(HasSubstr("\x1b")));
  GanttStyle coloured = kStyle;
  coloured.colour = true;
  EXPECT_THAT(draw_gantt(timeline, coloured), HasSubstr("\x1b[36m░"));
}

TEST(Gantt, NothingHappened) {
  EXPECT_EQ(draw_gantt({}), "nothing happened\n");
}

}  // namespace
}  // namespace riffle::report
