// A session watches its own exchanges while it trains, window by window, and measures the network
// anew when they take another time than before. Everything that is decided is decided from the
// same numbers on all ranks, at the same step.
#pragma once

#include "runtime/agreement.h"
#include "runtime/drift.h"
#include "runtime/pace.h"

namespace riffle::runtime {

// Only a strategy whose programs follow the racks has a use for it: tried out on one rack and two.
bool follows_racks(const Strategy& strategy, int workers, const BucketPlan& buckets);

// The window that the lowest rank's options ask for, in steps; 0 where nothing is sensed. The same
// on all ranks.
int sensing_window(Exchanger& exchanger, const Strategy& strategy, const ModelSpec& model,
                   const SessionOptions& options);

// What is watched: the session.
class Watched {
 public:
  virtual ~Watched() = default;
  [[nodiscard]] virtual Step step() const = 0;
  [[nodiscard]] virtual const Strategy& strategy() const = 0;
  [[nodiscard]] virtual const World& world() const = 0;
  [[nodiscard]] virtual const BucketPlan& buckets() const = 0;
  [[nodiscard]] virtual bool is_under_way(Step step, int lane) const = 0;
  // Nothing of earlier steps travels any more.
  virtual void come_to_rest() = 0;
  // Plans for another cluster from the step under way on. False: it would exchange other things.
  virtual bool change_world(Cluster cluster) = 0;
  virtual void log(std::string what) = 0;
};

class Sensing {
 public:
  Sensing(Exchanger& exchanger, Recorder& recorder, Watched& watched, int window);

  // Between two steps: looks at what is due, and changes the world where that was decided.
  void look();
  // The buckets have changed: what was seen so far does not count.
  void restart();

 private:
  // Numbers that a rank tells about a window: the time of a step without waits and with them, and
  // what its exchanges took by step and lane (0: none, or not done yet).
  static constexpr int kLanes = 2;
  [[nodiscard]] std::size_t numbers() const {
    return 2 + static_cast<std::size_t>(window_) * kLanes;
  }
  [[nodiscard]] std::vector<double> own_numbers();
  void start_gathering();
  void decide();
  [[nodiscard]] std::vector<ExchangeTime> times_of(const std::vector<double>& numbers) const;
  void measure_again(const std::optional<Drift::Seen>& drift);
  void change_world();
  void begin_window();

  Exchanger& exchanger_;
  Recorder& recorder_;
  Watched& watched_;
  int window_;
  // What starts in a window may be merged so many steps later: its numbers are told only then.
  int lateness_ = 0;

  Step first_ = 0;           // of the window under way
  Clock::time_point began_;  // when numbers were told last
  Step began_at_ = 0;
  Seconds waited_{};                     // by then
  std::vector<ExchangeRecord> records_;  // of the window under way and later

  // Numbers of the last window on their way to all, as a flight on a lane of their own.
  FlightPtr gathering_;
  Step gathered_ = 0;  // its first step
  Step decide_at_ = 0;
  Step since_ = 0;  // windows before it do not count

  Drift drift_;
  Pace pace_;
  int resting_ = 0;   // windows to let pass before the next probe
  int patience_ = 1;  // grows while probes find nothing

  std::optional<Cluster> next_;
  Step switch_at_ = 0;
  std::string why_;
};

}  // namespace riffle::runtime
