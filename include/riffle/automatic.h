// strategy="auto": the session begins with a safe exact strategy, measures what computing takes,
// and after a few steps all ranks change to what the planner ranks first on the measured network
// and the measured times.
#pragma once

#include "riffle/plan.h"

namespace riffle {

struct Automatic {
  std::string spec = "auto";  // as it was asked for; the same on all ranks
  // False: only strategies that give the weights of synchronous SGD.
  bool inexact = false;
  // False: the first plan stays, whatever is measured later.
  bool replan = true;
  StrategyTable table = StrategyTable::builtin();
};

// What `strategy` of attach() and riffle.sync means.
struct ChosenStrategy {
  NamedStrategy strategy;  // to begin with
  std::optional<Automatic> automatic{};
};
// A strategy of the table, or "auto", "auto:inexact=true,replan=false". UsageError as
// StrategyTable::make.
ChosenStrategy choose_strategy(std::string_view spec,
                               StrategyTable table = StrategyTable::builtin());

// Of candidate_specs(), those that may be planned.
std::vector<std::string> allowed_specs(const Automatic& automatic);
// The best candidate that may be used. UsageError, naming `source`, where there is none.
const Candidate& best_allowed(const Plan& plan, const Automatic& automatic,
                              std::string_view source);
// Why the candidate runs, in a line; for one that is not exact, what changes.
std::string explain_choice(const Plan& plan, const Candidate& chosen, const Automatic& automatic);

}  // namespace riffle
