// Timelines of all ranks of a contender, joined.
#pragma once

#include "race/reports.h"
#include "riffle/timeline.h"

namespace riffle::race {

// What ranks have recorded by one clock, in seconds of the true cluster, from the first event on.
// Empty where some rank has recorded nothing.
Timeline joined(const Reports& reports, double dilate);

}  // namespace riffle::race
