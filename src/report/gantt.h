// A timeline drawn with characters: what a few workers do, second by second.
#pragma once

#include <string>

#include "riffle/timeline.h"

namespace riffle::report {

struct GanttStyle {
  int width = 100;  // of a whole line
  int workers = 4;  // the first ones
  int steps = 2;    // the first ones of the timeline
  bool colour = false;
};

// A row for each worker's computation and one for each of its lanes, time from left to right, with
// a scale above and a key below. A character stands for what took most of its slice of time.
std::string draw_gantt(const Timeline& timeline, const GanttStyle& style = {});

}  // namespace riffle::report
