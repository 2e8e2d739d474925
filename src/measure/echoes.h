// Latency between hosts: small messages that bounce.
#pragma once

#include "measure/pair_table.h"
#include "measure/place.h"

namespace riffle::measure {

// Round trips of a pair.
struct Echo {
  Seconds least{};  // what disturbs a trip only makes it longer
  Seconds usual{};  // the median

  [[nodiscard]] Seconds one_way() const { return least / 2; }
};

// Every pair of `among` meets, in as many rounds as there are members; in a round everybody bounces
// messages with one other. They meet again, and bounce more, while that stays within the budget;
// a timed trip of every pair is the least. All ranks of the job call it, members or not; the result
// is the same on all, by place in the group.
PairTable<Echo> time_echoes(const Place& place, const Group& among, Seconds budget);

// The opponent of `player` in a round of a tournament in which each of n meets each other once, in
// n-1 rounds (n where n is odd); -1 for who pauses.
int opponent(int player, int round, int n);
// How many rounds that takes.
constexpr int rounds_of(int n) {
  return n + n % 2 - 1;
}

}  // namespace riffle::measure
