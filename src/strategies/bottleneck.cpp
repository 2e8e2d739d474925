#include "strategies/bottleneck.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"
#include "model/slow_host.h"
#include "strategies/grouping.h"

namespace riffle {
namespace {

Rank delegate(const Rack& rack, int turn) {
  return rack.fast[static_cast<std::size_t>(turn) % rack.fast.size()];
}

int largest(const std::vector<Rack>& racks) {
  std::size_t most = 0;
  for (const Rack& rack : racks) most = std::max(most, rack.fast.size() + rack.slow.size());
  return static_cast<int>(most);
}

// The slow hosts of a rack in pairs with `partners`, which loses those that were taken: at most
// half of them, so that the others meet too.
void pair_slow(const Rack& rack, int turn, std::vector<Rank>& partners, Partition& groups) {
  const std::size_t pairs = std::max<std::size_t>(partners.size() / 2, 1);
  std::vector<Rank> taken;
  for (std::size_t i = 0; i < rack.slow.size(); ++i) {
    const Rank slow = rack.slow[(static_cast<std::size_t>(turn) + i) % rack.slow.size()];
    if (i >= pairs) {
      groups.push_back(Group{slow});
      continue;
    }
    taken.push_back(partners[(static_cast<std::size_t>(turn) + i) % partners.size()]);
    groups.push_back(Group{slow, taken.back()});
  }
  std::erase_if(partners, [&](Rank rank) { return std::ranges::count(taken, rank) > 0; });
}

std::vector<Rank> without(const std::vector<Rank>& ranks, Rank one) {
  std::vector<Rank> rest;
  std::ranges::remove_copy(ranks, std::back_inserter(rest), one);
  return rest;
}

Phase one_rack_phase(const Rack& rack, int turn) {
  Phase phase;
  std::vector<Rank> rest = rack.fast;
  if (!rack.slow.empty()) pair_slow(rack, turn, rest, phase.groups);
  if (rest.empty()) return phase;
  const auto rounds = grid_rounds(Group(rest));
  const Partition& grid = rounds[static_cast<std::size_t>(turn) % rounds.size()];
  phase.groups.insert(phase.groups.end(), grid.begin(), grid.end());
  return phase;
}

// A group is in the order of ranks, and so are its weights.
void meet(Phase& phase, std::vector<std::pair<Rank, double>> delegates) {
  std::ranges::sort(delegates);
  std::vector<Rank> ranks;
  for (const auto& [rank, weight] : delegates) {
    ranks.push_back(rank);
    phase.weights.push_back(weight);
  }
  phase.delegates = Group(std::move(ranks));
}

}  // namespace

std::vector<Rack> sense_racks(const World& world) {
  std::vector<double> rates;
  std::vector<double> times;
  for (const Rank rank : world.ranks()) {
    const WorkerSpec& worker = world.cluster.workers[rank];
    rates.push_back(worker.link.bandwidth.bytes_per_second);
    times.push_back(worker.slow);
  }
  const double usual_rate = median(rates);
  const double usual_time = median(times);
  const auto is_slow = [&](Rank rank) {
    const WorkerSpec& worker = world.cluster.workers[rank];
    return worker.link.bandwidth.bytes_per_second * kSlowHost < usual_rate ||
           worker.slow > kSlowHost * usual_time;
  };
  std::vector<Rack> racks;
  for (const Group& members : world.racks()) {
    Rack rack;
    for (const Rank rank : members) (is_slow(rank) ? rack.slow : rack.fast).push_back(rank);
    if (rack.fast.size() < 2) rack = {members.ranks(), {}};
    racks.push_back(std::move(rack));
  }
  return racks;
}

std::vector<Phase> delegate_phases(const World& world) {
  const std::vector<Rack> racks = sense_racks(world);
  std::vector<Phase> phases;
  if (racks.size() == 1) {
    const Rack& rack = racks.front();
    const auto grid = static_cast<int>(grid_rounds(Group(rack.fast)).size());
    const int period = rack.slow.empty() ? grid : 2 * largest(racks);
    for (int turn = 0; turn < period; ++turn) phases.push_back(one_rack_phase(rack, turn));
    return phases;
  }
  for (int turn = 0; turn < largest(racks); ++turn) {
    Phase phase;
    std::vector<Rank> delegates;
    for (const Rack& rack : racks) {
      delegates.push_back(delegate(rack, turn));
      std::vector<Rank> rest = without(rack.fast, delegates.back());
      if (!rack.slow.empty()) pair_slow(rack, turn, rest, phase.groups);
      if (!rest.empty()) phase.groups.emplace_back(std::move(rest));
    }
    phase.delegates = Group(std::move(delegates));
    phases.push_back(std::move(phase));
    if (largest(racks) == 2) phases.push_back({{}, {}, world.racks()});
  }
  return phases;
}

bool only_rotates(const World& world) {
  const auto racks = world.racks();
  if (racks.size() == 1 || !world.cluster.pairs.empty()) return false;
  const auto uniform = [&](const Group& rack) {
    const WorkerSpec& first = world.cluster.workers[rack.ranks().front()];
    return std::ranges::all_of(rack, [&](Rank rank) {
      const WorkerSpec& worker = world.cluster.workers[rank];
      return worker.link == first.link && worker.slow == first.slow;
    });
  };
  const std::vector<Rack> sensed = sense_racks(world);
  return largest(sensed) > 2 && std::ranges::all_of(racks, uniform) &&
         std::ranges::all_of(sensed, [](const Rack& rack) { return rack.slow.empty(); });
}

std::vector<Phase> delayed_phases(const World& world, int delay) {
  const std::vector<Rack> racks = sense_racks(world);
  std::vector<Group> whole;
  whole.reserve(racks.size());
  for (const Rack& rack : racks) whole.emplace_back(rack.fast);
  std::vector<Phase> phases;
  for (int turn = 0; turn < largest(racks) * (delay + 1); ++turn) {
    Phase phase;
    std::vector<std::pair<Rank, double>> delegates;  // with the sizes of their groups
    for (std::size_t r = 0; r < racks.size(); ++r) {
      const Rack& rack = racks[r];
      const Rank chosen = delegate(rack, turn / (delay + 1));
      if (rack.slow.empty()) {
        phase.groups.push_back(whole[r]);
      } else {
        std::vector<Rank> rest = without(rack.fast, chosen);
        pair_slow(rack, turn, rest, phase.groups);
        rest.push_back(chosen);
        phase.groups.emplace_back(std::move(rest));
      }
      delegates.emplace_back(chosen, phase.groups.back().size());
    }
    if (turn % (delay + 1) == 0) meet(phase, std::move(delegates));
    phases.push_back(std::move(phase));
  }
  // Racks average once before their delegates meet for the first time.
  std::ranges::rotate(phases, phases.end() - 1);
  return phases;
}

int automatic_delay(const World& world, const BucketPlan& buckets, Wire wire) {
  const std::vector<Rack> racks = sense_racks(world);
  if (racks.size() == 1 || world.cluster.fit) return 0;
  const CostModel cost(world.cluster);
  const auto time = [&](const Group& group) {
    Seconds sum{};
    for (const Bucket& bucket : buckets)
      sum += cost.curve(group)(wire_bytes(bucket.bytes, DType::f32, wire));
    return sum;
  };
  std::vector<Rank> delegates;
  Seconds inside{};
  for (const Rack& rack : racks) {
    delegates.push_back(rack.fast.front());
    inside = std::max(inside, time(Group(rack.fast)));
  }
  const Seconds across = time(Group(std::move(delegates)));
  if (across <= kSlowHost * inside) return 0;
  Seconds step{};
  for (const Bucket& bucket : buckets) step += bucket.compute;
  step = std::max(step, inside);
  if (step <= Seconds{}) return kLongestDelay;
  return static_cast<int>(std::clamp(std::ceil(across / step), 1.0, double{kLongestDelay}));
}

}  // namespace riffle
