// From what ranks reported to what a contender is judged by.
#pragma once

#include "race/reports.h"

namespace riffle::race {

// Steps from .. to-1 of those counted.
struct Window {
  Step from = 0;
  Step to = 0;
  bool operator==(const Window&) const = default;
};

// Whole periods after the first, which fills pipelines and connections, unless whole steps were
// made before counting began (`warm`). All steps where there is only one period or less.
Window window_of(Step steps, int period, bool warm);

struct Measure {
  double dilate = 1;
  int period = 1;
  bool warm = false;
  std::optional<double> target{};
  // What computing takes in a step, for libraries that do not tell what they wait.
  std::optional<double> compute{};
};

// Sets steps, times, loss, accuracy, curve and evaluations of the result.
void measure(const Reports& reports, const Measure& how, Result& result);

}  // namespace riffle::race
