// What a proof looks for, and how it says what it found.
#pragma once

#include <vector>

#include "riffle/verify.h"
#include "schedule/period.h"

namespace riffle::verifier {

using schedule::Instance;
using schedule::instance;
using schedule::Moment;
using schedule::moment;
using schedule::Point;
using schedule::Schedule;
using schedule::step_of;

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

// Sets serving, where values are served.
void check_serving(const Schedule& schedule, Verification& result);

// Sets rounding, where values travel rounded.
void check_rounding(const Schedule& schedule, Verification& result);

}  // namespace riffle::verifier
