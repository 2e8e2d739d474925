#include "riffle/timeline.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "riffle/error.h"

namespace riffle {
namespace {

constexpr int kTimelineVersion = 1;
constexpr std::array<std::string_view, 5> kKinds{"forward", "backward", "optimizer", "exchange",
                                                 "wait"};

// Chrome's thread 0 is compute; lanes follow.
int thread_of(const Event& event) {
  return event.kind == EventKind::exchange ? event.lane + 1 : 0;
}

Json metadata(std::string_view what, int pid, int tid, const std::string& name) {
  return Json{{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}};
}

Json chrome_event(const Event& event) {
  // Exact seconds ride in args: microseconds as Chrome wants them would not read back equal.
  Json args{{"kind", name_of(event.kind)},
            {"step", event.step},
            {"start", event.start.count()},
            {"end", event.end.count()}};
  if (event.kind == EventKind::exchange) args["bytes"] = event.bytes.count;
  return Json{{"ph", "X"},
              {"name", event.name},
              {"cat", name_of(event.kind)},
              {"pid", event.rank},
              {"tid", thread_of(event)},
              {"ts", event.start.count() * 1e6},
              {"dur", (event.end - event.start).count() * 1e6},
              {"args", std::move(args)}};
}

Event read_event(const JsonReader& reader) {
  const JsonReader args = reader.at("args");
  Event event;
  const std::string kind = args.at("kind").text();
  const auto found = std::ranges::find(kKinds, kind);
  if (found == kKinds.end()) args.at("kind").fail("is no kind of event");
  event.kind = static_cast<EventKind>(found - kKinds.begin());
  event.name = reader.at("name").text();
  event.rank = static_cast<Rank>(reader.at("pid").integer(0, 1 << 30));
  const int thread = static_cast<int>(reader.at("tid").integer(0, 1 << 20));
  if (event.kind == EventKind::exchange) {
    if (thread == 0) reader.at("tid").fail("an exchange needs a lane");
    event.lane = thread - 1;
    event.bytes = Bytes{args.at("bytes").integer(0, kMostWhole)};
  }
  event.step = args.at("step").integer(0, kMostWhole);
  event.start = args.at("start").seconds();
  event.end = args.at("end").seconds();
  if (event.end < event.start) args.at("end").fail("is before the start");
  return event;
}

}  // namespace

std::string_view name_of(EventKind kind) {
  return kKinds.at(static_cast<std::size_t>(kind));
}

std::string print(const Event& event) {
  const std::string lane =
      event.kind == EventKind::exchange ? fmt::format(" lane {}", event.lane) : "";
  return fmt::format("rank {} step {} {} {}{}: {} .. {}", event.rank, event.step,
                     name_of(event.kind), event.name, lane, print(event.start), print(event.end));
}

std::string to_json(const Timeline& timeline) {
  Json json{{"riffle", "timeline"},
            {"version", kTimelineVersion},
            {"displayTimeUnit", "ms"},
            {"traceEvents", Json::array()}};
  Json& list = json["traceEvents"];
  std::set<std::pair<int, int>> threads;
  for (const Event& event : timeline.events) threads.emplace(event.rank, thread_of(event));
  for (const auto& [rank, thread] : threads) {
    list.push_back(metadata("process_name", rank, thread, fmt::format("worker {}", rank)));
    list.push_back(metadata("thread_name", rank, thread,
                            thread == 0 ? "compute" : fmt::format("lane {}", thread - 1)));
  }
  for (const Event& event : timeline.events) list.push_back(chrome_event(event));
  return json.dump() + "\n";
}

Timeline timeline_from_json(std::string_view text, std::string_view source) {
  const Json json = parse_json(text, source);
  const JsonReader reader(json, std::string(source));
  reader.expect_document("timeline", kTimelineVersion);
  const JsonReader list = reader.at("traceEvents");
  Timeline timeline;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonReader entry = list.at(i);
    if (entry.at("ph").text() == "X") timeline.events.push_back(read_event(entry));
  }
  return timeline;
}

}  // namespace riffle
