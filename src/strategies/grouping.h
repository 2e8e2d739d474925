// How ranks are divided into groups: the default size, balanced cuts, digits, grids, random groups.
// Positions are places in the list of live ranks, so gaps in a membership do not matter.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "riffle/world.h"

namespace riffle {

// The divisor of n nearest to sqrt(n) within a factor of 2, other than 1 and n; else about sqrt(n),
// at least 2. All n below 4.
int default_group(int n);

// How many groups of about that size: at least one, and no group of one where n > 1.
int group_count(int n, int about);
// Consecutive runs whose lengths differ by one at most, the longer ones first.
Partition cut(std::span<const Rank> ranks, int groups);
// The factors of n nearest to g, whose digits number the ranks: {n} when g >= n; none when n has no
// divisor, or one of them would be beyond 4*g.
std::vector<int> radices(int n, int g);
// The shuffle-exchange schedule: in round k ranks that differ only in digit k form a group. With
// radices all ranks hold the mean after the last round, whatever the first. Without them groups of
// about g and a riffle in between do nearly so, for ceil(log_g n) rounds.
std::vector<Partition> digit_rounds(const Group& ranks, int g);

// Rows and columns of a near-square grid; rows are balanced where n does not factor. One round of
// all below 4 ranks.
std::vector<Partition> grid_rounds(const Group& ranks);

// Groups of about g in an order drawn from (seed, draw): the same on every rank.
Partition random_groups(const Group& ranks, int g, std::uint64_t seed, std::uint64_t draw);

}  // namespace riffle
