// The programs of a strategy as everybody reads them: over a period, for a world and its buckets.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "riffle/strategy.h"
#include "schedule/rules.h"

namespace riffle::schedule {

// The exchanges of a step: the strategy's own, and with every exchange of weights of a bucket that
// carries buffers (Bucket::buffers) one of the buffers, merged as statistics are: never
// extrapolated, never by an outer optimizer, whose local share they keep.
Program program_of(const Strategy& strategy, Step step, const World& world,
                   const BucketPlan& buckets);

// The same step without postponed updates: gradients that would be merged in the next forward are
// complete before the update. The order of issue stays, so workers may differ in it.
Program without_postponing(Program program);

// Of all steps once: a period (after the warm-up), or where groups are random and never repeat, a
// few draws, which exchange the same kind of thing as all others. No more than `most`.
std::vector<Program> programs_of(const Strategy& strategy, const World& world,
                                 const BucketPlan& buckets,
                                 Step most = std::numeric_limits<Step>::max());

// The first step from `now` on at whose forward nothing of earlier programs is still to be merged:
// a time to change what is exchanged. Nothing where something is always on its way.
std::optional<Step> quiet_step(const Strategy& strategy, const World& world,
                               const BucketPlan& buckets, Step now);

// What these programs ask of a worker.
struct Needs {
  bool gradients = false;  // exchanged among more than one worker
  bool weights = false;
  bool buffers = false;
  bool state = false;
  bool outer = false;   // an outer optimizer has memory of its own
  bool agrees = false;  // what it agreed on is the same on all members
  int lanes = 0;
  bool forward = false;           // something is due before forward
  bool ready = false;             // something starts before the optimizer's step
  bool per_bucket = false;        // something starts as soon as its bucket is updated
  bool postpones = false;         // updates wait for the next forward
  bool rounds_gradients = false;  // some travel rounded: what is lost is remembered
  bool rounds_weights = false;    // some travel as differences to a reference
  bool keeps_reference = false;   // which is not what an outer optimizer agreed on
  bool one_reference = false;     // and moves with every exchange of weights
  bool serves = false;            // somebody must answer while this worker computes
  int rank = 0;                   // of the factors that gradients travel as; 0: they do not
};
// UsageError for an exchange that cannot be run.
Needs needs_of(const std::vector<Program>& programs);

}  // namespace riffle::schedule
