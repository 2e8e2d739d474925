// The workers' lanes: which exchange a lane takes next, when it may start, and that it is over. A
// lane is serial on each worker; lanes run side by side.
#pragma once

#include <string>
#include <vector>

#include "simulate/collectives.h"
#include "simulate/record.h"
#include "simulate/steps.h"

namespace riffle::simulator {

class Lanes {
 public:
  Lanes(int workers, const Progress& progress, Steps& steps, Record& record,
        Collectives& collectives, EventQueue& queue)
      : workers_(workers),
        progress_(progress),
        steps_(steps),
        record_(record),
        collectives_(collectives),
        queue_(queue) {}

  // There are at least so many.
  void grow(int lanes) {
    if (lanes <= lanes_) return;
    lanes_ = lanes;
    states_.resize(static_cast<std::size_t>(lanes_) * workers_);
  }

  // Starts what may start on a worker's lanes, or on one of them.
  void poke_all(int worker, double now) {
    for (int lane = 0; lane < lanes_; ++lane) poke(worker, lane, now);
  }
  void poke(int worker, int lane, double now);
  // A lane event.
  void event(int which, double now);

  // An exchange that is over on one worker.
  struct Finished {
    int worker = 0;
    Step step = 0;
    const Exchange* exchange = nullptr;
    bool chained = false;  // others of the step may start from its result
  };
  // What a collective's listener is told.
  Finished finish(std::int64_t owner, int member, double now);

  // Who waits for what, for the error of a program that cannot go on.
  [[nodiscard]] std::string stuck() const;

 private:
  struct State {
    Step step = 0;
    int position = 0;
    bool busy = false;
    double armed = -1;  // the event that counts
    double joined = 0;  // when what it is busy with began
  };

  void join(int worker, Step step, int item, double now);
  int open_served(const PlannedExchange& planned, std::int64_t owner);

  int workers_;
  const Progress& progress_;
  Steps& steps_;
  Record& record_;
  Collectives& collectives_;
  EventQueue& queue_;
  int lanes_ = 0;
  std::vector<State> states_;  // lane * workers + worker
};

}  // namespace riffle::simulator
