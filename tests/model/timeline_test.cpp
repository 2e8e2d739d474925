#include "riffle/timeline.h"

#include <gmock/gmock.h>

#include "base/json.h"
#include "refusal.h"

namespace riffle {
namespace {

using testing::HasSubstr;

const Event kExchange{EventKind::exchange, "bucket1",       3,          1, 2,
                      Seconds(0.0012),     Seconds(0.0034), Bytes{4096}};

TEST(Timeline, PrintsAnEvent) {
  EXPECT_EQ(print(kExchange), "rank 3 step 2 exchange bucket1 lane 1: 1.20 ms .. 3.40 ms");
  Event wait;
  wait.kind = EventKind::wait;
  wait.name = "bucket1";
  EXPECT_EQ(print(wait), "rank 0 step 0 wait bucket1: 0 ns .. 0 ns");
}

// What chrome://tracing and Perfetto need of each event.
TEST(Timeline, IsChromeJson) {
  const Json json = parse_json(to_json(Timeline{{kExchange}}), "t");
  const Json& list = json["traceEvents"];
  ASSERT_EQ(list.size(), 3U);  // two names and the event
  EXPECT_EQ(list[0]["args"]["name"], "worker 3");
  EXPECT_EQ(list[1]["args"]["name"], "lane 1");
  EXPECT_EQ(list[2]["ph"], "X");
  EXPECT_EQ(list[2]["pid"], 3);
  EXPECT_EQ(list[2]["tid"], 2);
  EXPECT_NEAR(list[2]["ts"].get<double>(), 1200, 1e-9);
  EXPECT_NEAR(list[2]["dur"].get<double>(), 2200, 1e-9);
}

TEST(Timeline, OtherTracesAndBadEventsAreRefused) {
  const std::string good = to_json(Timeline{{kExchange}});
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return refusal([&] { timeline_from_json(text, "t.json"); });
  };
  EXPECT_EQ(refusal([] { timeline_from_json(R"({"traceEvents": []})", "t.json"); }),
            "t.json: field \"riffle\" is missing");
  EXPECT_THAT(with("\"version\":1", "\"version\":0"), HasSubstr("version: '0'"));
  EXPECT_EQ(with("\"kind\":\"exchange\"", "\"kind\":\"exchagne\""),
            "t.json: traceEvents[2]: args: kind: '\"exchagne\"': is no kind of event");
  EXPECT_EQ(with("\"start\":0.0012", "\"start\":-1"),
            "t.json: traceEvents[2]: args: start: '-1': must be at least 0");
  EXPECT_EQ(with("\"end\":0.0034", "\"end\":0.0011"),
            "t.json: traceEvents[2]: args: end: '0.0011': is before the start");
  EXPECT_THAT(with("\"bytes\":4096", "\"bytes\":-1"), HasSubstr("bytes: '-1'"));
  EXPECT_THAT(with("\"tid\":2,\"ts\"", "\"tid\":0,\"ts\""), HasSubstr("needs a lane"));
}

}  // namespace
}  // namespace riffle
