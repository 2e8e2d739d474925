// What this machine can emulate honestly.
#pragma once

#include <string>

#include "riffle/cluster.h"

namespace riffle::lab {

constexpr double most_dilation = 1e6;

struct Machine {
  int cores = 1;
};

// The least dilation at which the lab holds what the cluster says, with messages shrunk so.
double least_dilation(const Cluster& cluster, double shrink, const Machine& machine);

// UsageError that names what is asked too much of and the dilation that would work.
void refuse_what_cannot_be(const Cluster& cluster, double dilate, double shrink,
                           const Machine& machine);

}  // namespace riffle::lab
