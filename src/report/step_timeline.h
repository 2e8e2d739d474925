// One step cut out of a timeline, for pages and tables: what to look at when there are thousands.
#pragma once

#include "base/json.h"
#include "riffle/timeline.h"

namespace riffle::report {

// {"seconds": length, "events": [{"rank", "lane": "compute" | "exchange 0", "name", "start",
// "seconds"}]} of the ranks below `workers`: the step that communicates most, the first of equals;
// null for an empty timeline. Times count from the step's start. Layers of one kind that follow
// each other are one event; what began before the step or goes on after it is cut there.
Json step_timeline(const Timeline& timeline, int workers);

// Per step and rank: the time in which something travels, of that the time when the rank computes.
Seconds hidden_communication(const Timeline& timeline);

}  // namespace riffle::report
