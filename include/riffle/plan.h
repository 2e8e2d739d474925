// The planner: every strategy evaluated on a trace and a cluster, ranked, with the reason in words.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "riffle/simulate.h"

namespace riffle {

// What kind of training is planned for; it decides what a step is worth.
struct Training {
  // As of the network that `riffle converge` trains, where 0.1 suits synchronous SGD best: half of
  // the rate that suits it best with your model is 0.05.
  double learning_rate = 0.1;
  std::string split = "iid";  // how workers' data differ: iid, or dirichlet:A
};

// That the worth of a step was fitted with.
constexpr double kMomentum = 0.9;

struct Candidate {
  std::string spec;  // what to pass to --strategy
  Simulation simulation;
  double effective_step = 1;  // a step's worth against a step of synchronous SGD
  Seconds per_effective_step{};
  bool exact = false;  // gives the weights of synchronous SGD
  // The learning rate is too high for it: ranked after those that learn.
  bool breaks = false;
  std::string reason{};
  // Where rate or data are too much for it.
  std::vector<std::string> warnings{};
  // A step of it as a session measured it, where it ran.
  std::optional<Seconds> measured{};
};

// What would make the best candidate faster: what is at fault, and how much of a step it costs.
struct Limit {
  std::string what;  // "compute", "latency" or "bandwidth"
  std::string link;  // of a bandwidth: which links; empty otherwise
  double share = 0;  // of the step that would go if it were free
  bool operator==(const Limit&) const = default;
};

struct Plan {
  std::string model;
  std::string cluster;
  Limit limit{};
  std::vector<Candidate> candidates;  // the best first
  // What was planned on, where it is known.
  std::optional<Trace> trace{};
  std::optional<Cluster> network{};

  // The last of those that learn at this rate.
  [[nodiscard]] const Candidate& slowest() const;
  // UsageError, naming `what`, where the plan is for another number.
  void expect_workers(int workers, std::string_view what) const;
};

// Called before each evaluation with how many are done, how many there are, and the next one.
using PlanProgress = std::function<void(std::size_t, std::size_t, const std::string&)>;

// The specs worth trying: every strategy of the table with its defaults and its own candidates.
std::vector<std::string> candidate_specs(const StrategyTable& table);

// Where the time of a strategy's step goes, found by making links free, one kind after the other.
Limit find_limit(const Trace& trace, const Cluster& cluster, const NamedStrategy& strategy,
                 const SimulateOptions& options = {});
std::string print(const Limit& limit);

// Where the time of a candidate's step goes, and what the step is worth, in a sentence.
std::string reason_of(const Candidate& candidate);

// Ranked by the time that as much progress takes as a step of synchronous SGD makes. Strategies
// that refuse the cluster (groups on a fit) are left out. Of equally fast ones, exact ones come
// first; what breaks at this learning rate comes last.
Plan make_plan(const Trace& trace, const Cluster& cluster, const StrategyTable& table,
               const std::vector<std::string>& specs, const SimulateOptions& options = {},
               const PlanProgress& progress = {}, const Training& training = {});

// {"riffle": "plan", "version": 1, "model": ..., "cluster": ..., "limit": ..., "candidates": [...],
// "trace": ..., "network": ...}
std::string to_json(const Plan& plan);
Plan plan_from_json(std::string_view text, std::string_view source);
// A file that `riffle plan --plan-file` or a session's plan has become.
Plan load_plan(const std::string& file);

}  // namespace riffle
