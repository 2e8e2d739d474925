// Groups that exchange the same thing at the same time are disjoint, and whenever something of a
// bucket is exchanged, everybody takes part. Gradients are exchanged of all buckets together;
// weights, statistics and state may have their turns, bucket by bucket, but none is left out. A
// worker that has nobody to meet says so by a group of one.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "verify/checks.h"

namespace riffle::verifier {
namespace {

// Exchanges at one position of a bucket's chain in one step.
using Position = std::tuple<int, Payload, Collective, Moment, Moment>;

void check_disjoint(const Schedule& schedule, Step step, std::vector<Problem>& problems) {
  std::map<Position, std::vector<Instance>> positions;
  for (const Exchange& exchange : schedule.at(step).exchanges) {
    const Instance at = instance(exchange, step);
    positions[{exchange.bucket, exchange.payload, exchange.collective, at.taken, at.merged}]
        .push_back(at);
  }
  std::vector<const Instance*> group_of(static_cast<std::size_t>(schedule.ranks.size()));
  for (const auto& [position, groups] : positions) {
    std::ranges::fill(group_of, nullptr);
    for (const Instance& at : groups) {
      std::vector<Rank> twice;
      const Instance* other = nullptr;
      for (const Rank rank : at.exchange->group) {
        const Instance*& place = group_of[schedule.ranks.index_of(rank)];
        if (place != nullptr) {
          twice.push_back(rank);
          other = place;
        }
        place = &at;
      }
      if (other != nullptr)
        add(problems,
            problem(Problem::Check::partition, at, Group(std::move(twice)),
                    fmt::format("in two groups at once: {} and {}", print(other->exchange->group),
                                print(at.exchange->group))));
    }
  }
}

void check_cover(const Schedule& schedule, Step step, std::vector<Problem>& problems) {
  const Program& program = schedule.at(step);
  for (const Payload payload :
       {Payload::gradient, Payload::weight, Payload::buffers, Payload::state}) {
    std::map<int, std::vector<Rank>> present;  // by bucket
    for (const Exchange& exchange : program.exchanges) {
      if (exchange.payload != payload) continue;
      auto& ranks = present[exchange.bucket];
      ranks.insert(ranks.end(), exchange.group.begin(), exchange.group.end());
    }
    if (present.empty()) continue;
    for (const Bucket& bucket : schedule.buckets) {
      if (payload != Payload::gradient && !present.contains(bucket.id)) continue;
      auto& ranks = present[bucket.id];
      std::ranges::sort(ranks);
      std::vector<Rank> missing;
      std::ranges::set_difference(schedule.ranks, ranks, std::back_inserter(missing));
      if (missing.empty()) continue;
      add(problems, {Problem::Check::partition, step, bucket.id, Group(std::move(missing)),
                     fmt::format("take no part in the exchange of {}s", name_of(payload))});
    }
  }
}

// Every bucket has its turn.
void check_turns(const Schedule& schedule, Payload payload, std::vector<Problem>& problems) {
  std::set<int> present;
  Step first = 0;
  for (Step step = schedule.length(); step-- > 0;)
    for (const Exchange& exchange : schedule.at(step).exchanges)
      if (exchange.payload == payload) {
        present.insert(exchange.bucket);
        first = step;
      }
  if (present.empty()) return;
  for (const Bucket& bucket : schedule.buckets) {
    if (payload == Payload::buffers && bucket.buffers.count == 0) continue;  // it has none
    if (!present.contains(bucket.id))
      add(problems,
          {Problem::Check::partition, first, bucket.id, schedule.ranks,
           fmt::format("take no part in the exchange of {}s, in no step", name_of(payload))});
  }
}

}  // namespace

void check_partition(const Schedule& schedule, std::vector<Problem>& problems) {
  for (Step step = 0; step < schedule.length(); ++step) {
    check_disjoint(schedule, step, problems);
    check_cover(schedule, step, problems);
  }
  for (const Payload payload : {Payload::weight, Payload::buffers, Payload::state})
    check_turns(schedule, payload, problems);
}

}  // namespace riffle::verifier
