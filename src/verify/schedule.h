// The programs under proof, with every exchange placed in time.
#pragma once

#include <span>
#include <vector>

#include "riffle/verify.h"

namespace riffle::verify_detail {

// The points of a step in order; merges come before snapshots at one point.
enum Point : int {
  kBeforeForward,
  kReady,
  kBackwardDone,
  kBeforeStep,
  kUpdate,
  kStepped,  // after_step and bucket_stepped
  kStepDone,
  kPoints
};
int point_of(Start start);
int point_of(DuePoint due);

// Time as a worker counts it, without a clock.
using Moment = std::int64_t;
constexpr Moment moment(Step step, int point) {
  return step * kPoints + point;
}
constexpr Step step_of(Moment at) {
  return at / kPoints;
}

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

// One bucket of each set whose exchanges are alike.
std::vector<int> distinct_buckets(const Schedule& schedule);

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

Problem problem(Problem::Check check, const Instance& at, std::string what);
Problem problem(Problem::Check check, const Instance& at, Group ranks, std::string what);
// "the weight all_reduce of {0 1} of step 3"
std::string describe(const Instance& at);
// At most a few of a kind: a broken schedule repeats itself in every step.
void add(std::vector<Problem>& problems, Problem found);

// The checks, each in the file of its name.
void check_form(const Schedule& schedule, std::vector<Problem>& problems);
void check_partition(const Schedule& schedule, std::vector<Problem>& problems);
void check_lifetime(const Schedule& schedule, std::vector<Problem>& problems);
void check_deadlock(const Schedule& schedule, std::vector<Problem>& problems);
void check_traffic(const Schedule& schedule, const World& world, std::vector<Problem>& problems);
// Sets mean_preserved.
void check_mean(const Schedule& schedule, Verification& result);
// Sets mixing_rate and steps_to_consensus.
void check_mixing(const Schedule& schedule, Verification& result);

}  // namespace riffle::verify_detail
