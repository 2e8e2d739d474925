// Merging layers into messages: when is it better to wait for the next gradient than to pay one
// more start-up? Two answers: the exact optimum and the published rule.
#pragma once

#include <vector>

#include "riffle/cost.h"
#include "riffle/trace.h"

namespace riffle {

// What merging looks at, in the order backward completes layers.
struct ReadyLayer {
  Seconds ready{};  // its gradient, from the start of backward
  Bytes bytes;      // that travel
};
std::vector<ReadyLayer> ready_layers(const Trace& trace, Wire wire);

// Both return how many layers each message takes, in backward order.

// The exact optimum over all contiguous partitions, for messages that travel one after the other:
// F(j) = min over i < j of max(F(i), ready(j)) + T(bytes of i+1..j). O(L^2), any curve. Of equally
// fast partitions it takes the one with the most overlap at each end (the shortest last message).
std::vector<int> merge_optimal(const std::vector<ReadyLayer>& layers, const Curve& cost);

// The rule of MG-WFBP as its authors' code has it, greedy from the last layer on: a layer is merged
// into the next when waiting for that one's gradient costs less than a start-up. `cost` is linear.
std::vector<int> merge_paper(const std::vector<ReadyLayer>& layers, const LinearCost& cost);

// When the last message of a partition ends, from the start of backward.
Seconds merged_end(const std::vector<ReadyLayer>& layers, const std::vector<int>& layers_each,
                   const Curve& cost);

}  // namespace riffle
