// What a step of a strategy is worth, and where its training would break.
#pragma once

#include "riffle/converge.h"
#include "riffle/plan.h"

namespace riffle {

// UsageError for a rate or a split that makes no sense.
void check(const Training& training);

struct Worth {
  double effective_step = 1;  // against a step of synchronous SGD
  bool breaks = false;        // at this rate
  std::vector<std::string> warnings{};
};

Worth worth_of(const Theory& theory, const Traits& traits, const Training& training);

}  // namespace riffle
