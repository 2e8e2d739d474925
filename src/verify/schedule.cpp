#include "verify/schedule.h"

#include <fmt/format.h>

#include <algorithm>

namespace riffle::verify_detail {

int point_of(Start start) {
  switch (start) {
    case Start::bucket_ready:
      return kReady;
    case Start::backward_done:
      return kBackwardDone;
    case Start::bucket_stepped:
      return kStepped;
    case Start::step_done:
      break;
  }
  return kStepDone;
}

int point_of(DuePoint due) {
  switch (due) {
    case DuePoint::before_forward:
      return kBeforeForward;
    case DuePoint::before_step:
      return kBeforeStep;
    case DuePoint::after_step:
      break;
  }
  return kStepped;
}

Schedule::Schedule(std::vector<Program> all, bool repeats, Group live, BucketPlan cut)
    : programs(std::move(all)),
      periodic(repeats),
      ranks(std::move(live)),
      buckets(std::move(cut)),
      window(length()) {
  if (!periodic) return;
  int latest = 0;
  for (const Program& program : programs)
    for (const Exchange& exchange : program.exchanges)
      latest = std::max(latest, exchange.due.steps);
  window += latest + 1;
}

std::vector<int> distinct_buckets(const Schedule& schedule) {
  // The exchanges of each bucket over all steps, without the bucket's number.
  std::vector<std::vector<std::pair<Step, Exchange>>> of(schedule.buckets.size());
  for (Step step = 0; step < schedule.length(); ++step)
    for (const Exchange& exchange : schedule.at(step).exchanges) {
      of[exchange.bucket].emplace_back(step, exchange);
      of[exchange.bucket].back().second.bucket = 0;
    }
  std::vector<int> distinct;
  for (int bucket = 0; bucket < static_cast<int>(of.size()); ++bucket)
    if (std::ranges::none_of(distinct, [&](int other) { return of[other] == of[bucket]; }))
      distinct.push_back(bucket);
  return distinct;
}

Instance instance(const Exchange& exchange, Step step) {
  return {&exchange, step, moment(step, point_of(exchange.start)),
          moment(step + exchange.due.steps, point_of(exchange.due.point))};
}

std::vector<Instance> instances(const Schedule& schedule) {
  std::vector<Instance> all;
  for (Step step = 0; step < schedule.window; ++step)
    for (const Exchange& exchange : schedule.at(step).exchanges)
      all.push_back(instance(exchange, step));
  return all;
}

Problem problem(Problem::Check check, const Instance& at, Group ranks, std::string what) {
  return {check, at.step, at.exchange->bucket, std::move(ranks), std::move(what)};
}
Problem problem(Problem::Check check, const Instance& at, std::string what) {
  return problem(check, at, at.exchange->group, std::move(what));
}

std::string describe(const Instance& at) {
  return fmt::format("the {} {} of {} of step {}", name_of(at.exchange->payload),
                     name_of(at.exchange->collective), print(at.exchange->group), at.step);
}

void add(std::vector<Problem>& problems, Problem found) {
  constexpr std::ptrdiff_t kMost = 8;
  if (std::ranges::count(problems, found.check, &Problem::check) < kMost)
    problems.push_back(std::move(found));
}

}  // namespace riffle::verify_detail
