#include "report/step_timeline.h"

#include <gtest/gtest.h>

namespace riffle::report {
namespace {

Event event(EventKind kind, Step step, double start, double end, Rank rank = 0,
            const char* name = "x") {
  return {kind, name, rank, 0, step, Seconds(start), Seconds(end), {}};
}

using enum EventKind;

TEST(StepTimeline, NothingGivesNull) {
  EXPECT_TRUE(step_timeline({}, 4).is_null());
  EXPECT_EQ(hidden_communication({}).count(), 0);
}

TEST(StepTimeline, LayersOfAKindAreOneEventAndTimesCountFromTheStep) {
  const Timeline timeline{{event(forward, 0, 10, 11), event(forward, 0, 11, 13),
                           event(backward, 0, 13, 16), event(exchange, 0, 14, 17, 0, "bucket 0"),
                           event(wait, 0, 16, 17)}};
  const Json expected = Json::parse(R"({"seconds": 7.0, "events": [
    {"rank": 0, "lane": "compute", "name": "forward", "start": 0.0, "seconds": 3.0},
    {"rank": 0, "lane": "compute", "name": "backward", "start": 3.0, "seconds": 3.0},
    {"rank": 0, "lane": "compute", "name": "wait", "start": 6.0, "seconds": 1.0},
    {"rank": 0, "lane": "exchange 0", "name": "bucket 0", "start": 4.0, "seconds": 3.0}]})");
  EXPECT_EQ(step_timeline(timeline, 1), expected);
}

TEST(StepTimeline, TakesTheStepThatCommunicatesMost) {
  const Timeline timeline{{event(forward, 0, 0, 4), event(forward, 1, 4, 7),
                           event(exchange, 1, 5, 7, 0, "bucket 0"), event(forward, 2, 7, 9)}};
  const Json step = step_timeline(timeline, 1);
  EXPECT_EQ(step["seconds"], 3);
  EXPECT_EQ(step["events"].size(), 2);
}

TEST(StepTimeline, CutsWhatReachesBeyondTheStep) {
  const Timeline timeline{
      {event(forward, 3, 2, 6), event(exchange, 2, 0, 3), event(exchange, 3, 5, 9)}};
  const Json events = step_timeline(timeline, 1)["events"];
  ASSERT_EQ(events.size(), 3);
  EXPECT_EQ(events[1]["start"], 0);
  EXPECT_EQ(events[1]["seconds"], 1);
  EXPECT_EQ(events[2]["start"], 3);
  EXPECT_EQ(events[2]["seconds"], 1);
}

TEST(StepTimeline, LeavesOutLaterWorkers) {
  const Timeline timeline{{event(forward, 0, 0, 1, 0), event(forward, 0, 0, 5, 1)}};
  const Json step = step_timeline(timeline, 1);
  EXPECT_EQ(step["seconds"], 1);
  EXPECT_EQ(step["events"].size(), 1);
}

TEST(HiddenCommunication, IsWhereSomethingTravelsAndTheWorkerComputes) {
  // Two overlapping exchanges count once; the wait is exposed.
  const Timeline one{{event(forward, 0, 0, 2), event(backward, 0, 2, 6), event(wait, 0, 6, 9),
                      event(exchange, 0, 3, 5), event(exchange, 0, 4, 9)}};
  EXPECT_DOUBLE_EQ(hidden_communication(one).count(), 3);
  Timeline two = one;
  two.events.push_back(event(forward, 1, 9, 10));
  two.events.push_back(event(forward, 0, 0, 6, 1));
  two.events.push_back(event(exchange, 0, 0, 6, 1));
  EXPECT_DOUBLE_EQ(hidden_communication(two).count(), (3 + 0 + 6) / 3.0);
}

}  // namespace
}  // namespace riffle::report
