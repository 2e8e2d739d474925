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

// The exact optimum where each message is sent in two halves, one before the update that hides
// under backward and one after it that hides under the next forward, the front layers first (dear).
// `needed` is, for each layer in backward order, the forward time from that layer to the end.
// Minimizes F + G with F(j) as above and G(j) = max(G(i), needed(j)) + T'(bytes of i+1..j): keeps
// for every j the pairs that no other beats in both. Beyond `kMostSplitLayers` neighbours are
// joined before.
std::vector<int> merge_split(const std::vector<ReadyLayer>& layers,
                             const std::vector<Seconds>& needed, const Curve& first,
                             const Curve& second);
constexpr int kMostSplitLayers = 512;

// The rule of ASC-WFBP: two messages may travel at once, each then at 1.5 times the cost per byte;
// a layer is merged into the next only when both lanes are busy anyway.
std::vector<int> merge_two_lanes(const std::vector<ReadyLayer>& layers, const LinearCost& cost);

// When the last message of a partition ends, from the start of backward.
Seconds merged_end(const std::vector<ReadyLayer>& layers, const std::vector<int>& layers_each,
                   const Curve& cost);

}  // namespace riffle
