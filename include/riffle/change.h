// What happens to a cluster while it is simulated, emulated or raced on: links that slow down, lose
// packets, carry other people's traffic, are cut and repaired; workers that become slow.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "riffle/cluster.h"

namespace riffle {

// Something about a link (both ways) or a worker's speed. A link is named by the domain whose
// uplink it is ("rack1", "site0/rack2") or "worker3"; a name that ends in * means all that begin
// so. A cut link carries nothing until it is repaired, which gives it the bandwidth it had before
// the cut.
struct Change {
  Seconds at{};
  std::string link{};  // empty: the change is to a worker
  int worker = -1;
  std::optional<Bandwidth> bandwidth{};
  std::optional<Seconds> latency{};
  std::optional<Seconds> jitter{};  // up to so much is added to each packet; order is kept
  std::optional<double> loss{};     // of the packets of one maximum size, as a share
  std::optional<Bandwidth> load{};  // traffic of others, each way
  bool cut = false;
  bool repair = false;
  std::optional<double> slow{};  // its compute times are multiplied by this from its next step on
  bool operator==(const Change&) const = default;
};

// "at=2s,link=rack1,bandwidth=100Mbps", "at=3s,link=rack1,cut", "at=4s,link=rack1,repair",
// "at=1s,link=worker*,loss=1%,jitter=2ms", "at=1s,link=rack0,load=300Mbps",
// "at=5s,worker=3,slow=4"; several are separated by blanks or semicolons.
std::vector<Change> parse_changes(std::string_view text, std::string_view what);
// The same, or the path of a file with a change a line (# begins a comment).
std::vector<Change> load_changes(const std::string& text_or_file);
std::string print(const Change& change);

// A worker's link, or the uplink of a domain.
struct LinkId {
  bool uplink = false;
  int index = 0;  // of the worker or the domain
  bool operator==(const LinkId&) const = default;
};
std::string name_of(const Cluster& cluster, LinkId link);
// The links a change is about, none for a worker's. UsageError where cluster has no such link or
// worker.
std::vector<LinkId> links_of(const Change& change, const Cluster& cluster);

}  // namespace riffle
