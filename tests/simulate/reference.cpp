#include "reference.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "pattern/pieces.h"

namespace riffle::reference {

std::vector<int> FluidNetwork::route(Rank from, Rank to) const {
  const int n = cluster_.size();
  std::vector<int> links{2 * from, 2 * to + 1};
  // Up from both ends to the first common ancestor.
  const auto up = cluster_.ancestors(from);
  const auto down = cluster_.ancestors(to);
  for (const int domain : up)
    if (std::ranges::find(down, domain) == down.end()) links.push_back(2 * (n + domain));
  for (const int domain : down)
    if (std::ranges::find(up, domain) == up.end()) links.push_back(2 * (n + domain) + 1);
  return links;
}

double FluidNetwork::capacity(int link) const {
  const int n = cluster_.size();
  return link < 2 * n ? cluster_.workers[link / 2].link.bandwidth.bytes_per_second
                      : cluster_.domains[link / 2 - n].uplink.bandwidth.bytes_per_second;
}

void FluidNetwork::start(const Flow& flow, std::function<void(double)> arrived,
                         std::function<void(double)> left) {
  active_.push_back({route(flow.from, flow.to), flow.bytes, 0,
                     cluster_.latency(flow.from, flow.to).count(), std::move(arrived),
                     std::move(left)});
}

void FluidNetwork::at(double time, std::function<void(double)> callback) {
  timers_.push_back({time, std::move(callback)});
}

// Progressive filling: the link with the least equal share fixes its flows; take them out; again.
void FluidNetwork::fill_rates() {
  std::map<int, double> rest;
  std::map<int, int> count;
  for (Active& flow : active_) {
    flow.rate = -1;
    for (const int link : flow.links) {
      rest.emplace(link, capacity(link));
      ++count[link];
    }
  }
  for (;;) {
    int tightest = -1;
    double share = std::numeric_limits<double>::infinity();
    for (const auto& [link, flows] : count)
      if (flows > 0 && rest[link] / flows < share) {
        share = rest[link] / flows;
        tightest = link;
      }
    if (tightest < 0) return;
    for (Active& flow : active_) {
      if (flow.rate >= 0 || std::ranges::find(flow.links, tightest) == flow.links.end()) continue;
      flow.rate = share;
      for (const int link : flow.links) {
        rest[link] -= share;
        --count[link];
      }
    }
  }
}

double FluidNetwork::run() {
  while (!active_.empty() || !timers_.empty()) {
    fill_rates();
    double next = std::numeric_limits<double>::infinity();
    for (const Active& flow : active_) next = std::min(next, now_ + flow.rest / flow.rate);
    for (const Timer& timer : timers_) next = std::min(next, timer.time);
    for (Active& flow : active_) flow.rest -= flow.rate * (next - now_);
    now_ = next;
    // What ends within rounding of now ends now.
    std::vector<std::function<void(double)>> due;
    for (std::size_t i = 0; i < active_.size();) {
      if (active_[i].rest > active_[i].rate * 1e-13 * (1 + now_)) {
        ++i;
        continue;
      }
      timers_.push_back({now_ + active_[i].latency, std::move(active_[i].arrived)});
      if (active_[i].left) due.push_back(std::move(active_[i].left));
      active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (std::size_t i = 0; i < timers_.size();) {
      if (timers_[i].time > now_ * (1 + 1e-15)) {
        ++i;
        continue;
      }
      due.push_back(std::move(timers_[i].callback));
      timers_.erase(timers_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (const auto& callback : due) callback(now_);
  }
  return now_;
}

namespace {

// Blocks for one receiver travel together.
std::map<int, pattern::Message> outgoing(const pattern::Pattern& pattern, int member, int round) {
  std::vector<pattern::Message> list;
  pattern.sends(member, round, list);
  std::map<int, pattern::Message> merged;
  for (const pattern::Message& message : list) {
    auto [at, fresh] = merged.emplace(message.to, message);
    if (!fresh) at->second.count += message.count;
  }
  return merged;
}

// A vector in segments: each member begins a segment when the first messages of the last one have
// left, and when fewer than a window of them are under way.
class Collective {
 public:
  Collective(const pattern::Pattern& pattern, const Group& group, double bytes, int segments,
             const Cluster& cluster)
      : pattern_(pattern),
        group_(group),
        bytes_(bytes / segments),
        gamma_(cluster.gamma.value),
        network_(cluster),
        members_(static_cast<std::size_t>(pattern.members())) {
    for (Member& member : members_)
      member.segments.assign(static_cast<std::size_t>(segments),
                             {-1, std::vector<int>(pattern.rounds(), 0)});
    added_.assign(members_.size(), std::vector<double>(pattern.rounds(), 0));
    for (int m = 0; m < pattern.members(); ++m)
      for (int r = 0; r < pattern.rounds(); ++r)
        for (const auto& [to, message] : outgoing(pattern, m, r)) {
          for (const int side : {m, to})
            for (Segment& segment : members_[side].segments) ++segment.open[r];
          if (message.add) added_[to][r] += bytes_ * message.count / pattern.blocks();
        }
  }

  std::vector<double> ends(const std::vector<double>& joins) {
    for (int m = 0; m < pattern_.members(); ++m)
      network_.at(joins[m], [this, m](double t) { begin_segments(m, t); });
    network_.run();
    std::vector<double> ends;
    for (const Member& member : members_) ends.push_back(member.end);
    return ends;
  }

 private:
  struct Segment {
    int round = -1;
    std::vector<int> open;  // messages of a round still waited for, its own included
  };
  struct Member {
    std::vector<Segment> segments;
    int begun = 0;
    int ended = 0;
    int leaving = 0;
    double end = -1;
  };

  void begin_segments(int m, double now) {
    Member& member = members_[m];
    while (member.begun < static_cast<int>(member.segments.size()) && member.leaving == 0 &&
           member.begun - member.ended < pattern::kWindow)
      begin(m, member.begun++, now);
  }

  void begin(int m, int s, double now) {
    Member& member = members_[m];
    const int r = ++member.segments[s].round;
    if (r == pattern_.rounds()) {
      ++member.ended;
      member.end = now;
      return begin_segments(m, now);
    }
    const auto messages = outgoing(pattern_, m, r);
    if (r == 0) member.leaving = static_cast<int>(messages.size());
    for (const auto& [to, message] : messages)
      network_.start(
          {group_.ranks()[m], group_.ranks()[to], bytes_ * message.count / pattern_.blocks()},
          [this, m, receiver = to, r, s](double t) {
            for (const int side : {receiver, m}) {
              --members_[side].segments[s].open[r];
              if (members_[side].segments[s].round == r) advance(side, s, t);
            }
          },
          [this, m, r](double t) {
            if (r == 0 && --members_[m].leaving == 0) begin_segments(m, t);
          });
    advance(m, s, now);
  }

  void advance(int m, int s, double now) {
    Segment& segment = members_[m].segments[s];
    if (segment.open[segment.round] != 0) return;
    segment.open[segment.round] = -1;  // passed
    const double adding = gamma_ * added_[m][segment.round];
    if (adding > 0)
      network_.at(now + adding, [this, m, s](double t) { begin(m, s, t); });
    else
      begin(m, s, now);
  }

  const pattern::Pattern& pattern_;
  const Group& group_;
  double bytes_;  // of a segment
  double gamma_;
  FluidNetwork network_;
  std::vector<Member> members_;
  std::vector<std::vector<double>> added_;
};

}  // namespace

std::vector<double> collective_ends(const pattern::Pattern& pattern, const Group& group,
                                    double bytes, const Cluster& cluster,
                                    const std::vector<double>& joins) {
  const Bytes size{static_cast<std::int64_t>(bytes)};
  const int segments = pattern.has_phases() ? pattern::segments(pattern, size, cluster.piece) : 1;
  return Collective(pattern, group, bytes, segments, cluster).ends(joins);
}

}  // namespace riffle::reference
