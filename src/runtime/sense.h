// What a session knows about its own exchanges: it watches them while it trains, window by window,
// and measures the network anew when they take another time than before. Everything that is
// decided is decided from the same numbers on all ranks, at the same step.
#pragma once

#include "runtime/agreement.h"
#include "runtime/drift.h"
#include "runtime/flight.h"
#include "runtime/pace.h"
#include "runtime/recorder.h"

namespace riffle::runtime {

// Only a strategy whose programs follow the racks has a use for it: tried out on one rack and two.
bool follows_racks(const Strategy& strategy, int workers, const BucketPlan& buckets);

// The window that rank 0's options ask for, in steps; 0 where nothing is sensed. The same on all
// ranks.
int sensing_window(const Engine& engine, const Control& control, const Strategy& strategy,
                   const ModelSpec& model, const SessionOptions& options);

struct Sensing {
  Sensing(int steps, Step now, const Cluster& cluster);

  // Numbers that a rank tells about a window: the time of a step without waits and with them, and
  // what its exchanges took by step and lane (0: none, or not done yet).
  static constexpr int kLanes = 2;
  [[nodiscard]] std::size_t numbers() const {
    return 2 + static_cast<std::size_t>(window) * kLanes;
  }
  // A window begins now, and what is under way no longer counts.
  void restart(Step now, Seconds waited);
  // What starts in a window may be merged so many steps later: its numbers are told only then.
  int lateness = 0;

  int window;
  Step first = 0;           // of the window under way
  Clock::time_point began;  // when numbers were told last
  Step began_at = 0;
  Seconds waited{};                     // by then
  std::vector<ExchangeRecord> records;  // of the window under way and later

  // Numbers of the last window on their way to all, as a flight on a lane of their own.
  FlightPtr gathering;
  Step gathered = 0;  // its first step
  Step decide_at = 0;
  Step since = 0;  // windows before it do not count

  Drift drift;
  Pace pace;
  int resting = 0;   // windows to let pass before the next probe
  int patience = 1;  // grows while probes find nothing

  std::optional<Cluster> next;
  Step switch_at = 0;
  std::string why;
};

}  // namespace riffle::runtime
