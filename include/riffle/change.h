// What happens to a cluster while a simulation runs: links that slow down, are cut and repaired,
// workers that become slow.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "riffle/cluster.h"

namespace riffle {

// One of: a link's bandwidth or latency (both ways), a cut, a repair, a worker's speed. A link is
// named by the domain whose uplink it is ("rack1", "site0/rack2") or "worker3". A cut link carries
// nothing until it is repaired, which gives it the bandwidth it had before the cut.
struct Change {
  Seconds at{};
  std::string link{};  // empty: the change is to a worker
  int worker = -1;
  std::optional<Bandwidth> bandwidth{};
  std::optional<Seconds> latency{};
  bool cut = false;
  bool repair = false;
  std::optional<double> slow{};  // its compute times are multiplied by this from its next step on
  bool operator==(const Change&) const = default;
};

// "at=2s,link=rack1,bandwidth=100Mbps", "at=3s,link=rack1,cut", "at=4s,link=rack1,repair",
// "at=5s,worker=3,slow=4"; several are separated by blanks or semicolons.
std::vector<Change> parse_changes(std::string_view text, std::string_view what);
// The same, or the path of a file with a change a line (# begins a comment).
std::vector<Change> load_changes(const std::string& text_or_file);
std::string print(const Change& change);

}  // namespace riffle
