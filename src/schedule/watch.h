// When a session plans again. One rule, read by the runtime, which measures, and by the simulator,
// which predicts what a session would do. Pure: the same numbers give the same answer on every
// rank.
//
// Steps are counted in windows. When a window is over, and what started in it has been merged,
// every rank tells what it has seen; a quarter of a window later all ranks judge the same numbers:
//   exchanges take another time (drift.h): the network is measured, part by part between steps;
//   a host computes slowly, or no longer does (pace.h): it is planned around it;
//   computing takes another time on all hosts (Usual on the median): the trace is stretched.
// What comes of it is planned anew, and all ranks change at the first step at which nothing is on
// its way.
#pragma once

#include "riffle/strategy.h"
#include "schedule/drift.h"
#include "schedule/pace.h"

namespace riffle::schedule {

// Steps that are judged together.
struct Window {
  Step first = 0;
  int steps = 0;
  int lateness = 0;  // what starts in it may be merged so many steps later (lateness_of)

  [[nodiscard]] Step tell_at() const { return first + steps + lateness; }
  [[nodiscard]] Step judge_at() const { return tell_at() + std::max(steps / 4, 1); }
};

// What a rank tells about a window.
struct Told {
  Seconds busy{};   // of a step, without waits
  Seconds whole{};  // and with them
  // By step of the window and lane: what its exchanges took. Zero: none, or not done yet.
  std::vector<Seconds> exchanges;
};

// What ran in a window.
struct Ran {
  const Strategy& strategy;
  const World& world;
  const BucketPlan& buckets;
};

class Watch {
 public:
  // Lanes that are looked at.
  static constexpr int kLanes = 2;
  // A window lasts about so long, so that a change is seen within seconds.
  static constexpr Seconds kWindowTime{0.1};
  static constexpr int kLeastSteps = 1;
  static constexpr int kLongestPatience = 64;
  // Phases of longer periods come too rarely to be learned.
  static constexpr int kLongestPeriod = 16;

  struct Alarm {
    std::optional<Drift::Seen> network;  // must be measured
    bool hosts = false;                  // slow() has changed
    std::optional<double> tempo;         // all compute so many times as long
  };

  // `slow` by rank, 1 for those that are not.
  explicit Watch(std::vector<double> slow) : pace_(std::move(slow)) {}

  // How many steps make a window where a step takes so long; no more than `most`.
  static int steps_for(Seconds step, int most);

  // By rank, in the order of the world's ranks. Nothing: all is as it was.
  std::optional<Alarm> look(const Window& window, const std::vector<Told>& told, const Ran& ran);
  [[nodiscard]] const std::vector<double>& slow() const { return pace_.factors(); }

  // Another schedule runs: what its exchanges take must be learned anew.
  void restart();
  // A measurement has found a change, or nothing: then the next waits, each time twice as long.
  void measured(bool changed);

 private:
  std::optional<double> look_at_tempo(const std::vector<Seconds>& busy);

  Drift drift_;
  Pace pace_;
  Usual longer_{Usual::Way::up};  // of the median over ranks
  Usual shorter_{Usual::Way::down};
  int resting_ = 0;   // windows to let pass before the next measurement
  int patience_ = 1;  // grows while measurements find nothing
};

// How many steps after its own an exchange may still travel: before them it cannot be told what it
// took. At least 1 where a bucket is due before its next forward.
int lateness_of(const Ran& ran);

// The exchanges of a window, with what each took.
std::vector<ExchangeTime> times_of(const Window& window, const std::vector<Told>& told,
                                   const Ran& ran);

// --- What a measurement of a known network takes.
// Training stops for no longer than a step at a time, or for what a rate needs to show.
Seconds slice_time(Seconds step);
// A slice of this time has room for latencies and for an uplink both ways; shorter ones hold
// latencies, or an uplink one way.
bool holds_both(Seconds slice);
// The slices in which the uplinks of a cluster are measured.
int slices_of(const Cluster& known, Seconds slice);

}  // namespace riffle::schedule
