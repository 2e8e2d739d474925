// The planner: every strategy evaluated on a trace and a cluster, ranked, with the reason in words.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "riffle/simulation.h"
#include "riffle/strategy.h"

namespace riffle {

struct Candidate {
  std::string spec;  // what to pass to --strategy
  Simulation simulation;
  double effective_step = 1;  // a step's worth against a step of synchronous SGD
  Seconds per_effective_step{};
  std::string reason{};
};

struct Plan {
  std::string model;
  std::string cluster;
  std::vector<Candidate> candidates;  // the best first
};

using Evaluator = std::function<Simulation(const NamedStrategy&)>;
// Called before each evaluation with how many are done, how many there are, and the next one.
using PlanProgress = std::function<void(std::size_t, std::size_t, const std::string&)>;

// The specs worth trying: every strategy of the table with its defaults and its parameter grid.
std::vector<std::string> candidate_specs(const StrategyTable& table);

// Strategies that refuse the cluster (groups on a fit) are left out.
Plan make_plan(const Trace& trace, const Cluster& cluster, const StrategyTable& table,
               const std::vector<std::string>& specs, const Evaluator& evaluate,
               const PlanProgress& progress = {});

// {"riffle": "plan", "version": 1, "model": ..., "cluster": ..., "candidates": [...]}
std::string to_json(const Plan& plan);

}  // namespace riffle
