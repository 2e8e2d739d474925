// What the words of program.h mean in time. Each rule stands here and nowhere else; verifier,
// simulator and runtime read it.
#pragma once

#include <string>

#include "schedule/points.h"

namespace riffle::schedule {

// The due point of an exchange of step 0.
Moment moment_of(const Due& due);
// When an exchange of `step` takes its snapshot, and when it is merged.
Moment taken(const Exchange& exchange, Step step);
Moment merged(const Exchange& exchange, Step step);

// A gradient that is merged only after its step's update point: the update of its bucket is
// postponed to that merge (dear).
bool postpones(const Exchange& exchange);

// Of two exchanges of one step that share a member, `later` further down in the program: whether
// it starts from the result of `earlier`. Where `earlier` is delayed beyond it, both run side by
// side, each from its own snapshot.
bool chains(const Exchange& earlier, const Exchange& later);

// They chain, and `earlier` is still in flight when `later` may start: it waits for it, on whatever
// lane that is. (For one that is merged before, the worker has waited.)
bool chains_in_flight(const Exchange& earlier, const Exchange& later);

// The merge overwrites the local value: what was written after the snapshot is lost.
bool overwrites(const Exchange& exchange);

// The first moment after `after` at which the step itself writes the payload: backward writes
// gradients, the update weights and the optimizer's state. (Forward writes buffers, which need no
// care: a lost statistic is estimated again.)
Moment next_write(Payload payload, Moment after);

// The optimizer updates bucket by bucket, as soon as gradients are merged, so that this exchange
// can start early.
bool updates_by_bucket(const Exchange& exchange);

// The result of `earlier` is only an input of `later`, which follows it on the same lane: nobody
// waits for the first or merges it. A reduce_scatter whose all_gather comes later.
bool continues(const Exchange& earlier, const Exchange& later);

// Nobody looks at the value between the snapshot of this exchange and its merge, so that it may
// travel where it lies.
bool travels_in_place(const Exchange& exchange);

// Why no worker can run this exchange; empty where it can be run.
std::string refusal(const Exchange& exchange);
// Why no worker can run `later` after an `earlier` one that it chains with in flight: the result of
// that one is where the next looks for it only if it lies in the bucket's own memory.
std::string refusal(const Exchange& earlier, const Exchange& later);
// Why exchange number `index` cannot be run in this program: a factor travels without the other.
std::string refusal_of_factor(const Program& program, std::size_t index);

}  // namespace riffle::schedule
