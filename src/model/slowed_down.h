// A cluster as a lab emulates it: slower in time, narrower in bytes.
#pragma once

#include "riffle/cluster.h"

namespace riffle::model {

// Time stretched `dilate`-fold, messages that carry 1/`shrink` of their bytes: what a message of
// 1/shrink of the bytes takes here is dilate times what the whole one takes there.
Cluster slowed_down(Cluster cluster, double dilate, double shrink);

}  // namespace riffle::model
