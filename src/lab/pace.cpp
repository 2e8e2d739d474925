#include "lab/pace.h"

#include <fmt/format.h>

#include <fstream>

namespace riffle::lab {

ProcessorTime ProcessorTime::now() {
  std::ifstream file("/proc/stat");
  std::string name;
  file >> name;
  ProcessorTime result;
  double ticks = 0;
  constexpr int idle = 3;
  constexpr int waiting = 4;
  for (int i = 0; i < 8 && file >> ticks; ++i) {
    result.all += ticks;
    if (i != idle && i != waiting) result.busy += ticks;
  }
  return result;
}

bool Pace::is_of_processors() const {
  constexpr double much_late = 0.02;
  constexpr double much_busy = 0.95;
  return late > much_late || busy > much_busy;
}

Json Pace::json() const {
  return {{"busy_share", busy}, {"late_share", late}, {"processors_limited", is_of_processors()}};
}

Pace pace_since(const ProcessorTime& before, const Lab& lab) {
  const ProcessorTime after = ProcessorTime::now();
  const double ticks = after.all - before.all;
  // A moment's share would be a matter of chance.
  constexpr double least_ticks = 20;
  const auto& report = lab.network().report();
  const auto delivered = static_cast<double>(report.delivered.load());
  return {.busy = ticks > least_ticks ? (after.busy - before.busy) / ticks : 0,
          .late = delivered > 0 ? static_cast<double>(report.late.load()) / delivered : 0};
}

void say_who_set(const Pace& pace) {
  if (pace.is_of_processors())
    fmt::print(stderr,
               "riffle: the processors set the pace, not the network: busy {:.0f} % of the time, "
               "{:.1f} % of packets late; a larger --dilate makes the figures honest\n",
               100 * pace.busy, 100 * pace.late);
}

}  // namespace riffle::lab
