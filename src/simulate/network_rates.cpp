// The rates of streams: levels of links, computed again where something has changed.
#include <algorithm>
#include <cmath>

#include "simulate/network.h"

namespace riffle {
namespace {

// Levels and loads that differ by less are the same: what rounding leaves.
constexpr double kSlack = 1e-12;

}  // namespace

void Network::settle(double now) {
  while (!dirty_.empty() || !changed_.empty()) {
    resolve(now);
    for (const int id : tight_)
      if (streams_[id].weight > 0) relieve(id, now);
    tight_.clear();
  }
  for (const int id : touched_) {
    streams_[id].touched = false;
    reschedule(id, now);
  }
  touched_.clear();
}

void Network::reschedule(int id, double now) {
  Stream& stream = streams_[id];
  if (stream.weight == 0 || stream.rate <= 0) return;
  const double rest = stream.entries[stream.head].tag - stream.served;
  const double end = stream.last + std::max(rest, 0.0) / stream.rate;
  // A later end needs no event of its own: the earlier one finds out and asks again.
  if (end >= stream.scheduled) return;
  stream.scheduled = std::max(end, now);
  queue_.push(stream.scheduled, Happening::stream_done, id);
}

void Network::resolve(double now) {
  // The lowest level first: what it depends on are lower ones, so most links are computed once.
  const auto higher = [&](int a, int b) { return level_[a] > level_[b]; };
  std::ranges::make_heap(dirty_, higher);
  while (!dirty_.empty()) {
    std::ranges::pop_heap(dirty_, higher);
    const int id = dirty_.back();
    dirty_.pop_back();
    links_[id].dirty = false;
    const double before = level_[id];
    const double after = fair_level(id);
    if (after == before || std::abs(after - before) <= kSlack * std::min(after, before)) continue;
    level_[id] = after;
    const std::size_t known = dirty_.size();
    spread(id, before, after);
    for (std::size_t i = known; i < dirty_.size(); ++i)
      std::ranges::push_heap(dirty_.begin(), dirty_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                             higher);
  }
  for (const int id : changed_) update_rate(id, now);
  changed_.clear();
}

// Tells the neighbours of a link whose level has changed. A link that offers less than both levels
// does not care: to it such a flow is either its own to limit or limited by a third link. Nor does
// a link that limits nobody when a flow gets less, nor one to which the flow's cap is less than
// both.
void Network::spread(int id, double before, double after) {
  const double least = std::min(before, after);
  const auto tell = [&](int link) {
    if (least < level_[link] && (after > before || level_[link] != kNever)) mark_dirty(link);
  };
  for (const Member& member : links_[id].streams) {
    if (least <= rate_[member.stream] * (1 + kSlack)) mark_changed(member.stream);
    if (least >= member.cap) continue;
    if (member.other >= 0) {
      tell(member.other);
      continue;
    }
    const Stream& stream = streams_[member.stream];
    for (int u = 0; u < stream.uses; ++u)
      if (u != member.which) tell(stream.use[u].link);
  }
}

double Network::offer_elsewhere(const Member& member) const {
  if (member.other >= 0) return std::min(member.cap, level_[member.other]);
  const Stream& stream = streams_[member.stream];
  double offer = member.cap;
  for (int u = 0; u < stream.uses; ++u)
    if (u != member.which) offer = std::min(offer, level_[stream.use[u].link]);
  return offer;
}

// What the link offers a flow that nothing else limits: flows that are limited elsewhere keep less
// than an equal share, the others share what those leave. What all take at a level grows with it,
// ever more slowly: so from any level Newton's step leads to one that is not too high, and from
// there upwards to the solution. The level before is a good start.
double Network::fair_level(int id) {
  const LinkState& link = links_[id];
  offers_.clear();
  double all = 0;
  for (const Member& member : link.streams) {
    offers_.emplace_back(offer_elsewhere(member), member.weight);
    all += member.weight;
  }
  if (all <= 0) return kNever;
  const double least = link.capacity / all;
  double level = level_[id];
  double shared = 0;  // weight of the flows that the link limits
  const auto step = [&] {
    double rest = link.capacity;
    shared = 0;
    for (const auto& [offer, flows] : offers_) {
      const bool limited = offer < level;
      rest -= limited ? offer * flows : 0;
      shared += limited ? 0 : flows;
    }
    level = std::max(rest, 0.0) / shared;
  };
  step();
  if (shared <= 0) level = least;  // the start was above every offer
  step();
  // Upwards from here: fewer and fewer flows are limited by this link.
  for (double before = all + 1; shared > 0 && shared < before;) {
    before = shared;
    step();
  }
  return shared > 0 ? level : kNever;
}

void Network::update_rate(int id, double now) {
  Stream& stream = streams_[id];
  stream.changed = false;
  if (!stream.attached) return;
  double rate = stream.cap;
  for (int u = 0; u < stream.uses; ++u) rate = std::min(rate, level_[stream.use[u].link]);
  if (rate > stream.safe) tight_.push_back(id);
  if (rate == stream.rate) return;
  advance(stream, now);
  stream.rate = rate_[id] = rate;
  ++rate_changes_;
  touch(id);
}

}  // namespace riffle
