// Collectives in which members get different things: all_to_all, gather, scatter. Everybody sends
// its parts to their members at once, and receives at once: one latency, each part travels once.
//
// A part goes behind a header on a tag of its own, which the receiver compares with its own call
// and the size it expects. Every member also listens for notices, from members that have given up.
#pragma once

#include "collective/execute_pattern.h"

namespace riffle::collective {

// Runs a valid call to its end. UsageError where parts do not fit the operation; CommError as
// PatternOperation. After an error what was to be received is undefined.
void exchange_parts(Engine& engine, const Call& call, const Collectives::Parts& parts,
                    const CallTags& tags, Deadline deadline);

}  // namespace riffle::collective
