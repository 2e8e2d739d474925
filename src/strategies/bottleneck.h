// The bottleneck pattern of ds-sync: who is slow, who speaks for its rack, who averages with whom.
#pragma once

#include <vector>

#include "riffle/bucket.h"
#include "riffle/cost.h"
#include "riffle/world.h"

namespace riffle {

// The live members of a rack. Slow hosts are set apart only where two fast ones are left.
struct Rack {
  std::vector<Rank> fast;
  std::vector<Rank> slow;
};

// A host is slow when its link has less than 1/kSlowHost (model/slow_host.h) of the median
// bandwidth or its compute takes more than kSlowHost times the median time.
std::vector<Rack> sense_racks(const World& world);

// One step of the pattern.
struct Phase {
  Group delegates;              // one of each rack; empty where none meet
  std::vector<double> weights;  // per delegate, with a delay: the size of its group in the rack
  Partition groups;             // without a delay the others, with one all
};

// Without delay. In phase p each rack sends another delegate to the group of delegates; those that
// stay average in their rack. A slow host is in no larger group than a pair: it meets one of its
// rack, another in each phase; when there are too many of them, some are alone for a phase. Every
// phase is a partition; over a period, as many phases as the largest rack has members, every fast
// worker is a delegate and everybody is connected. Racks of two would leave nobody to mix with the
// one that was away, so they average as a whole in every other phase. One rack has no delegates: it
// is a grid.
std::vector<Phase> delegate_phases(const World& world);

// True where phases differ only in who of a rack speaks for it, and all of a rack are alike: no
// slow hosts, no racks of two, one link and speed in each rack.
bool only_rotates(const World& world);

// With a delay of d steps. All members average inside their rack in every step, slow hosts as
// above. Every d+1 steps, from step 1 on, the delegates take a snapshot; d steps later, just
// before the rack's average, each delegate receives the difference to their mean, scaled by the
// size of its group, so that the rack's mean receives it once.
std::vector<Phase> delayed_phases(const World& world, int delay);

// The least delay for which nobody waits for the slow links: their time in steps, rounded up. Zero
// where the exchange between racks takes at most twice as long as the one inside. At most
// kLongestDelay: beyond that accuracy suffers, so it is better to wait.
int automatic_delay(const World& world, const BucketPlan& buckets, Wire wire);
constexpr int kLongestDelay = 20;

}  // namespace riffle
