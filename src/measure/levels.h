// Racks and sites, from what was measured between hosts. Pure: the same numbers give the same
// answer on every rank.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "measure/pair_table.h"
#include "riffle/units.h"

namespace riffle::measure {

// A set of hosts with something in common that others have not: a rack, a site, or all of them.
struct Part {
  int parent = -1;         // index in Levels; -1 for all hosts
  std::vector<int> hosts;  // ascending
  bool by_rate = false;    // told from its siblings by rates alone
  bool operator==(const Part&) const = default;
};
// All hosts first, parents before children, the parts of a part in the order of their first hosts.
using Levels = std::vector<Part>;

// A host's own link to its switch can be long or narrow without its being in a rack of its own, so
// it is taken off first. Hosts then fall into parts where latencies across are longer than inside
// by a fifth and `noise`; where latencies say nothing, where hosts that send across all at once get
// less than their own links carry, and those that send inside do not. Parts have at least two
// hosts, and may be divided again.
//
// `latency` is one way, `rate` what pairs carried while all hosts were sending; both may have gaps.
// `before` are parts that were known (innermost, by host); they count for a host whose own link is
// so narrow that rates tell nothing of it.
Levels find_levels(const PairTable<Seconds>& latency, const PairTable<Bandwidth>& rate,
                   Seconds noise = microseconds(50), const std::vector<int>& before = {});

// What each way of each host's link carried: the best over all peers.
struct HostRate {
  Bandwidth out;
  Bandwidth in;
  [[nodiscard]] Bandwidth best() const { return std::max(out, in); }
};
std::vector<HostRate> host_rates(const PairTable<Bandwidth>& rate);

// The indices of the parts that `part` is divided into.
std::vector<int> parts_of(const Levels& levels, int part);
// Hosts of a part with as many beyond it, within the part around it: spread over the parts on both
// sides, so that no inner link is the narrow one.
std::vector<std::pair<int, int>> pairs_across(const Levels& levels, int part);
// The innermost part that a host is in.
int innermost(const Levels& levels, int host);

}  // namespace riffle::measure
