#include "simulate/fair_rates.h"

#include <cmath>

namespace riffle::simulator {
namespace {

// Levels and loads that differ by less are the same: what rounding leaves.
constexpr double kSlack = 1e-12;

}  // namespace

void FairRates::set_route(int stream, double cap, std::span<const int> links) {
  if (stream >= static_cast<int>(rate_.size())) rate_.resize(streams_.size(), 0);
  Route& route = streams_[stream].route;
  route.cap = cap;
  route.uses = static_cast<int>(links.size());
  for (int u = 0; u < route.uses; ++u) route.use[u].link = links[u];
}

bool FairRates::weigh(int stream, int flows) {
  Route& route = streams_[stream].route;
  if (flows == 0) {
    if (route.attached) detach(stream);
    return false;
  }
  if (route.uses == 0) return false;
  const bool fresh = !route.attached;
  if (fresh) attach(stream, flows);
  for (int u = 0; u < route.uses; ++u) {
    const Route::Use& use = route.use[u];
    on_[use.link].streams[use.position].weight = flows;
    link_changed(use.link);
  }
  return fresh;
}

void FairRates::attach(int stream, int flows) {
  Route& route = streams_[stream].route;
  route.attached = true;
  rate_[stream] = 0;  // until the levels are known
  for (int u = 0; u < route.uses; ++u) {
    auto& list = on_[route.use[u].link].streams;
    route.use[u].position = static_cast<int>(list.size());
    list.push_back({.cap = route.cap,
                    .weight = static_cast<double>(flows),
                    .stream = stream,
                    .which = u,
                    .other = route.uses == 2 ? route.use[1 - u].link : -1});
  }
  ask(stream);
}

void FairRates::detach(int stream) {
  Route& route = streams_[stream].route;
  route.attached = false;
  for (int u = 0; u < route.uses; ++u) {
    auto& list = on_[route.use[u].link].streams;
    const int hole = route.use[u].position;
    list[hole] = list.back();
    streams_[list[hole].stream].route.use[list[hole].which].position = hole;
    list.pop_back();
    link_changed(route.use[u].link);
  }
}

void FairRates::settle_levels() {
  // The lowest level first: what it depends on are lower ones, so most links are computed once.
  const auto higher = [&](int a, int b) { return level_[a] > level_[b]; };
  std::ranges::make_heap(dirty_, higher);
  while (!dirty_.empty()) {
    std::ranges::pop_heap(dirty_, higher);
    const int link = dirty_.back();
    dirty_.pop_back();
    on_[link].dirty = false;
    const double before = level_[link];
    const double after = fair_level(link);
    if (after == before || std::abs(after - before) <= kSlack * std::min(after, before)) continue;
    level_[link] = after;
    const std::size_t known = dirty_.size();
    spread(link, before, after);
    for (std::size_t i = known; i < dirty_.size(); ++i)
      std::ranges::push_heap(dirty_.begin(), dirty_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                             higher);
  }
}

// Tells the neighbours of a link whose level has changed. A link that offers less than both levels
// does not care: to it such a flow is either its own to limit or limited by a third link. Nor does
// a link that limits nobody when a flow gets less, nor one to which the flow's cap is less than
// both.
void FairRates::spread(int link, double before, double after) {
  const double least = std::min(before, after);
  const auto tell = [&](int other) {
    if (least < level_[other] && (after > before || level_[other] != kNever)) link_changed(other);
  };
  for (const Member& member : on_[link].streams) {
    if (least <= rate_[member.stream] * (1 + kSlack)) ask(member.stream);
    if (least >= member.cap) continue;
    if (member.other >= 0) {
      tell(member.other);
      continue;
    }
    const Route& route = streams_[member.stream].route;
    for (int u = 0; u < route.uses; ++u)
      if (u != member.which) tell(route.use[u].link);
  }
}

double FairRates::offer_elsewhere(const Member& member) const {
  if (member.other >= 0) return std::min(member.cap, level_[member.other]);
  const Route& route = streams_[member.stream].route;
  double offer = member.cap;
  for (int u = 0; u < route.uses; ++u)
    if (u != member.which) offer = std::min(offer, level_[route.use[u].link]);
  return offer;
}

// What the link offers a flow that nothing else limits: flows that are limited elsewhere keep less
// than an equal share, the others share what those leave. What all take at a level grows with it,
// ever more slowly: so from any level Newton's step leads to one that is not too high, and from
// there upwards to the solution. The level before is a good start.
double FairRates::fair_level(int link) {
  offers_.clear();
  double all = 0;
  for (const Member& member : on_[link].streams) {
    offers_.emplace_back(offer_elsewhere(member), member.weight);
    all += member.weight;
  }
  if (all <= 0) return kNever;
  const double capacity = links_.capacity(link);
  const double least = capacity / all;
  double level = level_[link];
  double shared = 0;  // weight of the flows that the link limits
  const auto step = [&] {
    double rest = capacity;
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

}  // namespace riffle::simulator
