#include "report/gantt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace riffle::report {
namespace {

struct Look {
  const char* glyph;
  const char* colour;
};

Look look_of(EventKind kind, bool odd) {
  switch (kind) {
    case EventKind::forward:
      return {"░", "\x1b[36m"};
    case EventKind::backward:
      return {"▓", "\x1b[34m"};
    case EventKind::optimizer:
      return {"█", "\x1b[35m"};
    case EventKind::exchange:
      // Neighbours must be told apart.
      return odd ? Look{"▄", "\x1b[33m"} : Look{"▆", "\x1b[32m"};
    case EventKind::wait:
      break;
  }
  return {"·", "\x1b[90m"};
}

// Short exchanges that share a slice.
constexpr Look kSeveral{"≡", "\x1b[32m"};

struct Slot {
  double filled = 0;
  Look look{" ", ""};
  int exchanges = 0;
};

struct Row {
  std::string label;
  std::vector<Slot> slots;
  std::size_t exchanges = 0;
};

struct Axis {
  double from = 0;
  double until = 1;
  int columns = 1;
  [[nodiscard]] double slice() const { return (until - from) / columns; }
};

void paint(Row& row, const Event& event, const Axis& axis, bool odd) {
  const double begin = (event.start.count() - axis.from) / axis.slice();
  const double end = (event.end.count() - axis.from) / axis.slice();
  const int last = std::min(static_cast<int>(end), axis.columns - 1);
  for (int column = std::max(static_cast<int>(begin), 0); column <= last; ++column) {
    const double covered = std::min(end, column + 1.0) - std::max<double>(begin, column);
    Slot& slot = row.slots[column];
    const Look look = look_of(event.kind, odd);
    if (event.kind == EventKind::exchange) ++slot.exchanges;
    // Many short layers of one kind add up.
    if (slot.look.glyph == look.glyph) {
      slot.filled += covered;
    } else if (covered > slot.filled) {
      slot = {covered, look, slot.exchanges};
    }
  }
}

std::string print_row(const Row& row, bool colour) {
  std::string text;
  const char* now = "";
  for (const Slot& slot : row.slots) {
    // Less than a tenth of a slice is nothing to see.
    const Look look = slot.filled < 0.1 ? Look{" ", ""} : slot.exchanges > 2 ? kSeveral : slot.look;
    if (colour && look.colour != now) text += *look.colour == '\0' ? "\x1b[0m" : look.colour;
    now = look.colour;
    text += look.glyph;
  }
  if (colour) text += "\x1b[0m";
  if (!colour) text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string print_scale(const Axis& axis) {
  constexpr int kEvery = 20;
  std::string text(static_cast<std::size_t>(axis.columns), ' ');
  for (int column = 0; column + 8 <= axis.columns; column += kEvery) {
    const std::string label = "|" + print(Seconds(axis.slice() * column));
    text.replace(static_cast<std::size_t>(column), label.size(), label);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string print_key(bool colour) {
  std::string text;
  for (const auto& [kind, odd, name] : {std::tuple{EventKind::forward, false, "forward"},
                                        std::tuple{EventKind::backward, false, "backward"},
                                        std::tuple{EventKind::optimizer, false, "optimizer"},
                                        std::tuple{EventKind::wait, false, "waits"},
                                        std::tuple{EventKind::exchange, false, "exchange"},
                                        std::tuple{EventKind::exchange, true, "next"}}) {
    const Look look = look_of(kind, odd);
    text += colour ? fmt::format("{}{}\x1b[0m {}  ", look.colour, look.glyph, name)
                   : fmt::format("{} {}  ", look.glyph, name);
  }
  return text + (colour ? fmt::format("{}{}\x1b[0m several", kSeveral.colour, kSeveral.glyph)
                        : fmt::format("{} several", kSeveral.glyph));
}

// From the first event to the end of what the shown steps compute. Exchanges may go on beyond it.
Axis time_axis(const Timeline& timeline, const GanttStyle& style, int columns) {
  Step first = timeline.events.front().step;
  for (const Event& event : timeline.events) first = std::min(first, event.step);
  Axis axis{1e300, -1e300, columns};
  for (const bool computing : {true, false}) {
    for (const Event& event : timeline.events) {
      if (event.rank >= style.workers || event.step >= first + style.steps) continue;
      axis.from = std::min(axis.from, event.start.count());
      if ((event.kind != EventKind::exchange) == computing)
        axis.until = std::max(axis.until, event.end.count());
    }
    if (axis.until > axis.from) break;  // there is computing
  }
  return axis;
}

}  // namespace

std::string draw_gantt(const Timeline& timeline, const GanttStyle& style) {
  if (timeline.events.empty()) return "nothing happened\n";
  constexpr int kLabel = 18;
  const Axis axis = time_axis(timeline, style, std::max(style.width - kLabel, 20));
  const auto shown = [&](const Event& event) {
    return event.rank < style.workers && event.start.count() < axis.until &&
           event.end.count() >= axis.from;
  };
  std::map<std::pair<int, int>, Row> rows;  // by worker, then computation before lanes
  for (const Event& event : timeline.events) {
    if (!shown(event)) continue;
    const int thread = event.kind == EventKind::exchange ? event.lane + 1 : 0;
    Row& row = rows[{event.rank, thread}];
    if (row.slots.empty()) {
      row.label =
          thread == 0 ? fmt::format("worker {}", event.rank) : fmt::format("  lane {}", event.lane);
      row.slots.resize(static_cast<std::size_t>(axis.columns));
    }
    const bool exchange = event.kind == EventKind::exchange;
    paint(row, event, axis, exchange && row.exchanges++ % 2 == 1);
  }
  std::string text = std::string(kLabel, ' ') + print_scale(axis) + "\n";
  for (const auto& [where, row] : rows)
    text += fmt::format("{:<{}}{}\n", row.label, kLabel, print_row(row, style.colour));
  return text + std::string(kLabel, ' ') + print_key(style.colour) + "\n";
}

}  // namespace riffle::report
