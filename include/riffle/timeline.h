// A timeline: what happened when, on which worker; real and simulated runs write the same one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "riffle/world.h"

namespace riffle {

enum class EventKind { forward, backward, optimizer, exchange, wait };
std::string_view name_of(EventKind kind);

struct Event {
  EventKind kind = EventKind::forward;
  std::string name;  // the layer, the bucket, what is waited for
  Rank rank = 0;
  int lane = 0;  // of an exchange
  Step step = 0;
  Seconds start{};
  Seconds end{};
  Bytes bytes;  // of an exchange
  bool operator==(const Event&) const = default;
};

struct Timeline {
  std::vector<Event> events;
  bool operator==(const Timeline&) const = default;
};

// "rank 0 step 2 exchange bucket1 lane 0: 1.20 ms .. 3.40 ms"
std::string print(const Event& event);
// Chrome and Perfetto JSON: a process per worker, a thread for compute and one per lane.
std::string to_json(const Timeline& timeline);
// Reads what to_json wrote; other traces are refused.
Timeline timeline_from_json(std::string_view text, std::string_view source);

}  // namespace riffle
