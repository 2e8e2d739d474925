// What is wrong with a network, or could be better, in words. Pure.
#pragma once

#include <string>
#include <vector>

#include "measure/host_facts.h"
#include "measure/network.h"

namespace riffle::measure {

// Facts are by host, in the network's order. A line for each finding, the worst first: large
// packets that get lost, slow hosts, links that are slower one way, unsteady latencies, a faster
// interface that is not used, settings of TCP that cannot fill a path, and paths that the cluster
// does not explain. Empty where there is nothing to say.
std::vector<std::string> diagnose(const Network& network, const std::vector<HostFacts>& facts,
                                  const PairTable<bool>& large_packets);

}  // namespace riffle::measure
