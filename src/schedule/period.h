// The programs of a period on one line of time, every exchange placed on it.
#pragma once

#include <vector>

#include "riffle/bucket.h"
#include "schedule/rules.h"

namespace riffle::schedule {

struct Schedule {
  Schedule(std::vector<Program> all, bool repeats, Group live, BucketPlan cut);

  std::vector<Program> programs;
  bool periodic;
  Group ranks;  // the live ones
  BucketPlan buckets;
  Step window;  // steps that show everything once: a period and what it leaves in flight

  [[nodiscard]] Step length() const { return static_cast<Step>(programs.size()); }
  [[nodiscard]] const Program& at(Step step) const { return programs[step % length()]; }
};

// One exchange of one step.
struct Instance {
  const Exchange* exchange = nullptr;
  Step step = 0;
  Moment taken = 0;   // its snapshot
  Moment merged = 0;  // its due point
};
Instance instance(const Exchange& exchange, Step step);
// Of all steps of the window, in issue order.
std::vector<Instance> instances(const Schedule& schedule);

// For each exchange of a program, by its place in it, the earlier ones that it waits for
// (chains_in_flight). In programs that form a partition at every position.
std::vector<std::vector<int>> waits_of(const Program& program);

// Whether `later` starts from the result of `earlier`, on a member of both: they are exchanges of
// one step, in this order, and chain.
bool starts_from(const Instance& later, const Instance& earlier);

// One bucket of each set whose exchanges are alike.
std::vector<int> distinct_buckets(const Schedule& schedule);

}  // namespace riffle::schedule
