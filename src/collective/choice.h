// Which algorithm a call takes: the one place that decides. Pure functions of what all members
// know, so that members never choose differently.
#pragma once

#include <vector>

#include "collective/call.h"
#include "riffle/cost.h"
#include "riffle/engine.h"

namespace riffle::collective {

// True where all members are on one host.
bool is_on_one_host(const Engine& engine, const Group& group);

// What an exchange of a program takes: what the program says; where it leaves that open, the
// members' shared memory inside a host (`automatic`), and across hosts what is cheapest on the
// cluster that all ranks have agreed on.
Algorithm algorithm_for(const Engine& engine, const CostModel& agreed, const Exchange& exchange,
                        Bytes size);

// What `automatic` stands for in a call over messages whose caller knows no cluster.
// docs/collectives.md has the table.
Algorithm default_algorithm(Operation operation, int members, Bytes size,
                            const std::vector<std::vector<int>>& racks);

}  // namespace riffle::collective
