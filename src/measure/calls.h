// Links from timed all-reduces: what an exchange really costs, with all that the engine adds.
#pragma once

#include "collective/control.h"
#include "riffle/cluster.h"
#include "riffle/cost.h"

namespace riffle::measure {

// An all-reduce that was timed, and the algorithm whose closed form its time stands for.
struct TimedCall {
  Algorithm algorithm;
  Bytes size;
  Seconds time{};
};

// The calls among n that tell most about a link: a small one and a large one, each by the algorithm
// that the cost model takes where latency, or bandwidth, is all that counts.
struct TellingCalls {
  TimedCall small;
  TimedCall large;
};
TellingCalls telling_calls(int n);

// The link on which the closed forms of both calls among n take the times that were measured.
Link link_of(int n, const TellingCalls& calls);

// Times the calls among a group as exchanges will run, in memory of the engine and beside threads
// that compute: between hosts by the algorithms named, inside a host through shared memory. All
// members take part.
Link time_calls(Engine& engine, const collective::Control& control, const Group& group);

}  // namespace riffle::measure
