// Every snapshot is merged while it is still worth something: nothing that was written between a
// snapshot and a merge that overwrites is lost, no gradient is merged after the next backward has
// replaced it, and what was scattered is gathered.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "verify/checks.h"

namespace riffle::verifier {
namespace {

using Chain = std::pair<int, Payload>;  // bucket and payload

void check_own_writes(const Instance& at, std::vector<Problem>& problems) {
  const Exchange& exchange = *at.exchange;
  if (exchange.payload == Payload::buffers) return;
  const bool gradient = exchange.payload == Payload::gradient;
  if (!gradient && !schedule::overwrites(exchange)) return;
  const Moment write = schedule::next_write(exchange.payload, at.taken);
  if (write >= at.merged) return;
  add(problems,
      problem(Problem::Check::lifetime, at,
              gradient
                  ? fmt::format("the gradient is due {} +{}, but backward of step {} has "
                                "overwritten it by then",
                                name_of(exchange.due.point), exchange.due.steps, step_of(write))
                  : fmt::format("{} loses the update of step {}, made after its snapshot and "
                                "before its merge",
                                name_of(exchange.merge.kind), step_of(write))));
}

// What `merge` makes of `other`, which was merged between its snapshot and itself; empty: no harm.
std::string harm(const Exchange& merge, const Instance& other) {
  if (schedule::overwrites(merge))
    return fmt::format("{} discards {}, merged after its snapshot", name_of(merge.merge.kind),
                       describe(other));
  if (merge.merge.kind == Merge::Kind::outer && other.exchange->merge.kind == Merge::Kind::outer)
    return fmt::format("the outer step is from a value that {} has moved after its snapshot",
                       describe(other));
  return {};
}

// Merges of one rank into one bucket's payload, by the time they happen.
void check_merges(std::vector<Instance>& merges, Rank rank, std::vector<Problem>& problems) {
  std::ranges::stable_sort(merges, {}, &Instance::merged);
  for (std::size_t i = 0; i < merges.size(); ++i)
    for (std::size_t j = i; j-- > 0 && merges[j].merged > merges[i].taken;) {
      if (starts_from(merges[i], merges[j])) continue;
      std::string what = harm(*merges[i].exchange, merges[j]);
      if (!what.empty())
        add(problems, problem(Problem::Check::lifetime, merges[i], Group{rank}, std::move(what)));
    }
}

// A reduce_scatter leaves each member one block; an all_gather of the same group must follow.
void check_scattered(const std::vector<Instance>& all, Step last, std::vector<Problem>& problems) {
  for (const Instance& scatter : all) {
    if (scatter.exchange->collective != Collective::reduce_scatter || scatter.step >= last)
      continue;
    const auto gathers = [&](const Instance& other) {
      return other.exchange->collective == Collective::all_gather &&
             other.exchange->bucket == scatter.exchange->bucket &&
             other.exchange->payload == scatter.exchange->payload &&
             other.exchange->group == scatter.exchange->group && other.taken >= scatter.merged &&
             other.merged <= moment(scatter.step + 1, Point::before_forward);
    };
    if (std::ranges::none_of(all, gathers))
      add(problems, problem(Problem::Check::lifetime, scatter,
                            "scattered, but no all_gather of the group brings the parts together "
                            "before the next forward"));
  }
}

}  // namespace

void check_lifetime(const Schedule& schedule, std::vector<Problem>& problems) {
  std::vector<Instance> all = instances(schedule);
  std::map<Chain, std::vector<std::vector<Instance>>> merges;  // by worker
  for (const Instance& at : all) {
    if (at.step < schedule.length()) check_own_writes(at, problems);
    if (at.exchange->group.size() == 1) continue;
    auto& chain = merges[{at.exchange->bucket, at.exchange->payload}];
    chain.resize(static_cast<std::size_t>(schedule.ranks.size()));
    for (const Rank rank : at.exchange->group) chain[schedule.ranks.index_of(rank)].push_back(at);
  }
  for (auto& [chain, workers] : merges)
    for (std::size_t i = 0; i < workers.size(); ++i)
      check_merges(workers[i], schedule.ranks.ranks()[i], problems);
  std::erase_if(all, [](const Instance& at) {
    return at.exchange->collective != Collective::reduce_scatter &&
           at.exchange->collective != Collective::all_gather;
  });
  check_scattered(all, schedule.length(), problems);
}

}  // namespace riffle::verifier
