// What this machine can emulate honestly.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "riffle/change.h"
#include "riffle/cluster.h"

namespace riffle::lab {

constexpr double most_dilation = 1e6;

struct Machine {
  int cores = 1;
};

// The least dilation at which the lab holds what the cluster says, with messages shrunk so.
double least_dilation(const Cluster& cluster, double shrink, const Machine& machine);

// How a cluster is emulated: time stretched, bytes divided.
struct Scale {
  double dilate = 1;
  double shrink = 1;
};
// The least of both at which the lab holds what the cluster says for workers that each hold a model
// of so many bytes. What is given stays: messages of real tensors cannot shrink, and real compute
// sets how far time is stretched.
Scale least_scale(const Cluster& cluster, Bytes model, std::optional<double> dilate,
                  std::optional<double> shrink, const Machine& machine);

// UsageError that names what is asked too much of and the dilation that would work: of the cluster
// as it is, or as events make it.
void refuse_what_cannot_be(const Cluster& cluster, double dilate, double shrink,
                           const Machine& machine, const std::vector<Change>& events = {});

}  // namespace riffle::lab
