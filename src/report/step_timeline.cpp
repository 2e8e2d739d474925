#include "report/step_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace riffle::report {
namespace {

struct Span {
  double start = 0;
  double end = 0;
};

// Overlapping and touching spans joined, in order.
std::vector<Span> joined(std::vector<Span> spans) {
  std::ranges::sort(spans, {}, &Span::start);
  std::vector<Span> result;
  for (const Span& span : spans) {
    if (!result.empty() && span.start <= result.back().end)
      result.back().end = std::max(result.back().end, span.end);
    else
      result.push_back(span);
  }
  return result;
}

// Of two lists of disjoint spans in order.
double overlap(const std::vector<Span>& left, const std::vector<Span>& right) {
  double sum = 0;
  for (std::size_t i = 0, j = 0; i < left.size() && j < right.size();) {
    sum += std::max(0.0,
                    std::min(left[i].end, right[j].end) - std::max(left[i].start, right[j].start));
    left[i].end < right[j].end ? ++i : ++j;
  }
  return sum;
}

bool computes(const Event& event) {
  return event.kind == EventKind::forward || event.kind == EventKind::backward ||
         event.kind == EventKind::optimizer;
}

// From the first to the last that any of the ranks does in each step; exchanges may go on beyond
// it.
std::map<Step, Span> steps_of(const Timeline& timeline, int workers) {
  std::map<Step, Span> steps;
  for (const Event& event : timeline.events) {
    if (event.kind == EventKind::exchange || event.rank >= workers) continue;
    const auto [found, fresh] =
        steps.try_emplace(event.step, Span{event.start.count(), event.end.count()});
    if (fresh) continue;
    found->second.start = std::min(found->second.start, event.start.count());
    found->second.end = std::max(found->second.end, event.end.count());
  }
  return steps;
}

Span busiest(const Timeline& timeline, const std::map<Step, Span>& steps, int workers) {
  std::vector<Span> travelling;
  for (const Event& event : timeline.events)
    if (event.kind == EventKind::exchange && event.rank < workers)
      travelling.push_back({event.start.count(), event.end.count()});
  travelling = joined(std::move(travelling));
  Span best = steps.begin()->second;
  double most = overlap({best}, travelling);
  for (const auto& [step, span] : steps) {
    // A hair more is no more.
    if (const double sum = overlap({span}, travelling); sum > most * 1.001) {
      most = sum;
      best = span;
    }
  }
  return best;
}

Json event_json(const Event& event, const Span& window, const std::string& name) {
  const double start = std::max(event.start.count(), window.start);
  const double end = std::min(event.end.count(), window.end);
  const std::string lane =
      event.kind == EventKind::exchange ? fmt::format("exchange {}", event.lane) : "compute";
  return Json{{"rank", event.rank},
              {"lane", lane},
              {"name", name},
              {"start", start - window.start},
              {"seconds", end - start}};
}

}  // namespace

Json step_timeline(const Timeline& timeline, int workers) {
  const auto steps = steps_of(timeline, workers);
  if (steps.empty()) return nullptr;
  const Span window = busiest(timeline, steps, workers);
  const double hair = (window.end - window.start) * 1e-6;
  std::vector<Event> shown;
  for (const Event& event : timeline.events)
    if (event.rank < workers && event.start.count() < window.end - hair &&
        event.end.count() > window.start + hair)
      shown.push_back(event);
  std::ranges::stable_sort(shown, {}, [](const Event& event) {
    return std::tuple(event.rank, event.kind == EventKind::exchange, event.lane, event.start);
  });
  std::vector<Event> merged;
  for (const Event& event : shown) {
    const bool follows = !merged.empty() && event.kind != EventKind::exchange &&
                         merged.back().kind == event.kind && merged.back().rank == event.rank &&
                         (event.start - merged.back().end).count() <= hair;
    if (follows)
      merged.back().end = event.end;
    else
      merged.push_back(event);
  }
  Json events = Json::array();
  for (const Event& event : merged)
    events.push_back(event_json(
        event, window,
        event.kind == EventKind::exchange ? event.name : std::string(name_of(event.kind))));
  return Json{{"seconds", window.end - window.start}, {"events", std::move(events)}};
}

Seconds hidden_communication(const Timeline& timeline) {
  std::map<Rank, std::pair<std::vector<Span>, std::vector<Span>>> ranks;  // computing, travelling
  std::set<std::pair<Rank, Step>> steps;
  for (const Event& event : timeline.events) {
    auto& [computing, travelling] = ranks[event.rank];
    const Span span{event.start.count(), event.end.count()};
    if (computes(event)) {
      computing.push_back(span);
      steps.insert({event.rank, event.step});
    } else if (event.kind == EventKind::exchange) {
      travelling.push_back(span);
    }
  }
  double sum = 0;
  for (auto& [rank, both] : ranks)
    sum += overlap(joined(std::move(both.first)), joined(std::move(both.second)));
  return Seconds(steps.empty() ? 0 : sum / static_cast<double>(steps.size()));
}

}  // namespace riffle::report
