#include "reference.h"

#include <algorithm>
#include <limits>
#include <map>

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

void FluidNetwork::start(const Flow& flow, std::function<void(double)> arrived) {
  active_.push_back({route(flow.from, flow.to), flow.bytes, 0,
                     cluster_.latency(flow.from, flow.to).count(), std::move(arrived)});
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

std::vector<double> collective_ends(const pattern::Pattern& pattern, const Group& group,
                                    double bytes, const Cluster& cluster,
                                    const std::vector<double>& joins) {
  FluidNetwork network(cluster);
  const int n = pattern.members();
  std::vector<int> round(static_cast<std::size_t>(n), -1);
  std::vector<double> ends(static_cast<std::size_t>(n), -1);
  // Messages of a round that a member still waits for, its own included.
  std::vector<std::vector<int>> open(static_cast<std::size_t>(n));
  std::vector<std::vector<double>> added(static_cast<std::size_t>(n));
  const auto outgoing = [&](int member, int r) {
    std::vector<pattern::Message> list;
    pattern.sends(member, r, list);
    std::map<int, pattern::Message> merged;  // blocks for one receiver travel together
    for (const pattern::Message& message : list) {
      auto [at, fresh] = merged.emplace(message.to, message);
      if (!fresh) at->second.count += message.count;
    }
    return merged;
  };
  for (int m = 0; m < n; ++m) {
    open[m].assign(static_cast<std::size_t>(pattern.rounds()), 0);
    added[m].assign(static_cast<std::size_t>(pattern.rounds()), 0);
  }
  for (int m = 0; m < n; ++m)
    for (int r = 0; r < pattern.rounds(); ++r)
      for (const auto& [to, message] : outgoing(m, r)) {
        ++open[m][r];
        ++open[to][r];
        if (message.add) added[to][r] += bytes * message.count / pattern.blocks();
      }

  std::function<void(int, double)> begin;
  const auto advance = [&](int member, double now) {
    while (round[member] < pattern.rounds() && open[member][round[member]] == 0) {
      const double adding = cluster.gamma.value * added[member][round[member]];
      open[member][round[member]] = -1;  // passed
      if (adding > 0) {
        network.at(now + adding, [&begin, member](double t) { begin(member, t); });
        return;
      }
      begin(member, now);
      return;
    }
  };
  begin = [&](int member, double now) {
    const int r = ++round[member];
    if (r == pattern.rounds()) {
      ends[member] = now;
      return;
    }
    for (const auto& [to, message] : outgoing(member, r)) {
      const int receiver = to;
      network.start(
          {group.ranks()[member], group.ranks()[to], bytes * message.count / pattern.blocks()},
          [&, member, receiver, r](double t) {
            for (const int side : {receiver, member}) {
              --open[side][r];
              if (round[side] == r) advance(side, t);
            }
          });
    }
    advance(member, now);
  };
  for (int m = 0; m < n; ++m) network.at(joins[m], [&begin, m](double t) { begin(m, t); });
  network.run();
  return ends;
}

}  // namespace riffle::reference
