// Latency and bandwidth between pairs of ranks, as messages that bounce between them show.
#pragma once

#include <functional>

#include "collective/control.h"
#include "riffle/cluster.h"

namespace riffle::measure {

// One way, by place in the group; what a rank has with itself means nothing.
struct PairLinks {
  Group ranks;
  std::vector<Link> links;

  [[nodiscard]] const Link& between(Rank a, Rank b) const {
    return links[static_cast<std::size_t>(ranks.index_of(a) * ranks.size() + ranks.index_of(b))];
  }
};

// Every pair of `among` meets twice, each time in as many rounds as there are members; in a
// round everybody bounces messages with one other, so a round takes as long as its slowest pair:
// some milliseconds, on slow links some tenths of a second. All ranks of the session call it,
// members or not; the result is the same on all. `look_around` is called while nothing comes for a
// moment, to throw for a rank that will never come.
PairLinks probe_pairs(Engine& engine, const collective::Control& control, const Group& among,
                      const std::function<void()>& look_around);

// The better of two measurements of each pair: what disturbs one only makes it worse.
PairLinks best_of(PairLinks a, const PairLinks& b);

// The opponent of `player` in a round of a tournament in which each of n meets each other once, in
// n-1 rounds (n where n is odd); -1 for who pauses.
int opponent(int player, int round, int n);

}  // namespace riffle::measure
