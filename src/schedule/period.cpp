#include "schedule/period.h"

#include <algorithm>
#include <map>

namespace riffle::schedule {

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

Instance instance(const Exchange& exchange, Step step) {
  return {&exchange, step, taken(exchange, step), merged(exchange, step)};
}

std::vector<Instance> instances(const Schedule& schedule) {
  std::vector<Instance> all;
  for (Step step = 0; step < schedule.window; ++step)
    for (const Exchange& exchange : schedule.at(step).exchanges)
      all.push_back(instance(exchange, step));
  return all;
}

namespace {

// Whether exchanges of these are in flight while others, that may start from them, begin.
bool overlap(const Program& program, const std::vector<int>& which) {
  std::vector<std::pair<Moment, Moment>> positions;  // taken and merged
  for (const int i : which) {
    const Exchange& exchange = program.exchanges[i];
    const std::pair position(taken(exchange, 0), merged(exchange, 0));
    if (std::ranges::find(positions, position) == positions.end()) positions.push_back(position);
  }
  for (const auto& [taken_first, merged_first] : positions)
    for (const auto& [taken_then, merged_then] : positions)
      if (std::pair(taken_first, merged_first) != std::pair(taken_then, merged_then) &&
          merged_first <= merged_then && merged_first > taken_then)
        return true;
  return false;
}

}  // namespace

std::vector<std::vector<int>> waits_of(const Program& program) {
  const auto& exchanges = program.exchanges;
  std::map<std::pair<int, Payload>, std::vector<int>> alike;  // by bucket and payload
  for (int i = 0; i < static_cast<int>(exchanges.size()); ++i)
    if (exchanges[i].group.size() > 1)
      alike[{exchanges[i].bucket, exchanges[i].payload}].push_back(i);
  std::vector<std::vector<int>> waits(exchanges.size());
  for (const auto& [key, which] : alike) {
    if (!overlap(program, which)) continue;
    std::map<Rank, std::vector<int>> seen;
    for (const int later : which)
      for (const Rank rank : exchanges[later].group) {
        for (const int earlier : seen[rank])
          if (chains_in_flight(exchanges[earlier], exchanges[later]) &&
              std::ranges::find(waits[later], earlier) == waits[later].end())
            waits[later].push_back(earlier);
        seen[rank].push_back(later);
      }
  }
  return waits;
}

bool starts_from(const Instance& later, const Instance& earlier) {
  // Exchanges of one step lie in one program, in issue order.
  return earlier.step == later.step && earlier.exchange < later.exchange &&
         chains(*earlier.exchange, *later.exchange);
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

}  // namespace riffle::schedule
