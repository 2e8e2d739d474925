#include "model/cluster_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/median.h"
#include "model/slow_host.h"

namespace riffle::model {
namespace {

// Links differ when they weigh so many times as much, and the difference is more than the noise of
// a quiet host.
constexpr double kCounts = 1.5;
constexpr Seconds kNoise = microseconds(50);
constexpr Bytes kTypical = kibibytes(256);
// On a long link only a large one shows the bandwidth.
constexpr Bytes kLarge = mebibytes(4);

// What a message takes: latency and bandwidth as one number to compare links by.
Seconds weigh(const Link& link, Bytes message = kTypical) {
  return link.latency + message / link.bandwidth;
}

bool differ(const Link& a, const Link& b) {
  return std::ranges::any_of(std::array{kTypical, kLarge}, [&](Bytes message) {
    const Seconds one = weigh(a, message);
    const Seconds other = weigh(b, message);
    return std::abs(std::log(one / other)) > std::log(kCounts) &&
           std::chrono::abs(one - other) > kNoise;
  });
}

std::string print_link(const Link& link) {
  return fmt::format("{}, {}", print(link.latency), print(link.bandwidth));
}

std::string print_racks(const Partition& racks) {
  std::string text = fmt::format("{} rack{}: ", racks.size(), racks.size() == 1 ? "" : "s");
  for (std::size_t i = 0; i < racks.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : " | ", ranges(racks[i]));
  return text;
}

std::string name(const Group& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", ranges(ranks));
}

// Ranks that say the same share a line.
class Lines {
 public:
  void add(const std::string& text, Rank rank) { ranks_[text].push_back(rank); }
  void append_to(std::vector<std::string>& lines) {
    for (auto& [text, ranks] : ranks_)
      lines.push_back(fmt::format("{}: {}", name(Group(std::move(ranks))), text));
  }

 private:
  std::map<std::string, std::vector<Rank>> ranks_;
};

void compare_workers(const Cluster& before, const Cluster& now, std::vector<std::string>& lines) {
  Lines by_text;
  for (Rank rank = 0; rank < now.size(); ++rank) {
    const WorkerSpec& was = before.workers[rank];
    const WorkerSpec& is = now.workers[rank];
    if (differ(was.link, is.link))
      by_text.add(fmt::format("link {} -> {}", print_link(was.link), print_link(is.link)), rank);
    if ((was.slow > 1) != (is.slow > 1))
      by_text.add(is.slow > 1 ? fmt::format("computes {:.1f} times as long as is usual", is.slow)
                              : "computes as fast as is usual again",
                  rank);
  }
  by_text.append_to(lines);
}

// Of every level: racks by their number, what is around them by its name.
void compare_uplinks(const Cluster& before, const Cluster& now, const Partition& racks,
                     std::vector<std::string>& lines) {
  for (std::size_t d = 1; d < now.domains.size(); ++d) {
    const Link& was = before.domains[d].uplink;
    const Link& is = now.domains[d].uplink;
    if (!differ(was, is)) continue;
    const Group ranks = ranks_below(now, static_cast<int>(d));
    const auto rack = std::ranges::find(racks, ranks);
    const std::string what =
        rack == racks.end() ? now.domains[d].name : fmt::format("rack {}", rack - racks.begin());
    lines.push_back(fmt::format("uplink of {} ({}): {} -> {}", what, name(ranks), print_link(was),
                                print_link(is)));
  }
}

}  // namespace

Group ranks_below(const Cluster& cluster, int domain) {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < cluster.size(); ++rank) {
    int at = cluster.workers[static_cast<std::size_t>(rank)].domain;
    while (at != domain && at >= 0) at = cluster.domains[static_cast<std::size_t>(at)].parent;
    if (at == domain) ranks.push_back(rank);
  }
  return Group(std::move(ranks));
}

std::string ranges(const Group& ranks) {
  std::string text;
  const std::vector<Rank>& all = ranks.ranks();
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i + 1;
    while (end < all.size() && all[end] == all[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", all[i]);
    if (end - i > 1) text += fmt::format("-{}", all[end - 1]);
    i = end;
  }
  return text;
}

std::string summary(const Cluster& cluster) {
  std::string text = print_racks(World(cluster).racks());
  std::string slow;
  std::vector<Seconds> weights;
  for (const WorkerSpec& each : cluster.workers) weights.push_back(weigh(each.link));
  const Seconds usual = median(weights);
  for (Rank rank = 0; rank < cluster.size(); ++rank) {
    const WorkerSpec& each = cluster.workers[rank];
    std::string why;
    if (weigh(each.link) > kSlowHost * usual) why = "link";
    if (each.slow > 1) why += why.empty() ? "compute" : ", compute";
    if (!why.empty()) slow += fmt::format("{}{} ({})", slow.empty() ? "" : ", ", rank, why);
  }
  if (!slow.empty()) text += "; slow: " + slow;
  return text;
}

std::vector<std::string> changes(const Cluster& before, const Cluster& now) {
  std::vector<std::string> lines;
  const Partition racks = World(now).racks();
  const Partition known = World(before).racks();
  if (racks != known)
    lines.push_back(fmt::format("{} (before {})", print_racks(racks), print_racks(known)));
  else if (!std::ranges::equal(before.domains, now.domains, {}, &Domain::parent, &Domain::parent))
    lines.push_back(fmt::format("{}, joined in another way", print_racks(racks)));
  else
    compare_uplinks(before, now, racks, lines);
  compare_workers(before, now, lines);
  return lines;
}

}  // namespace riffle::model
