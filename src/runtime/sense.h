// A session watches its own exchanges while it trains, window by window, and measures the network
// anew when they take another time than before. Everything that is decided is decided from the
// same numbers on all ranks, at the same step; the rule is schedule/watch.h.
#pragma once

#include "runtime/agreement.h"
#include "runtime/slices.h"
#include "schedule/watch.h"

namespace riffle::runtime {

// Only a strategy whose buckets or programs follow the network has a use for it: tried out on
// clusters that differ in racks and in speed.
bool follows_network(const Strategy& strategy, int workers, const Trace& trace);

// The longest window that the lowest rank's options ask for, in steps; 0 where nothing is sensed.
// The same on all ranks.
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
  // Something was decided and waits for its step.
  [[nodiscard]] virtual bool is_changing() const = 0;
  // Nothing of earlier steps travels any more.
  virtual void come_to_rest() = 0;
  // The network is another, and computing takes `tempo` times as long as when it was planned.
  virtual void plan_again(Cluster cluster, double tempo, const std::string& why) = 0;
  virtual void log(std::string what) = 0;
};

class Sensing {
 public:
  // Windows have `most` steps at most.
  Sensing(Exchanger& exchanger, Recorder& recorder, Watched& watched, int most);

  // Between two steps: tells, judges or measures, whatever is due.
  void look();
  // Another schedule runs: what was seen so far does not count.
  void restart();

 private:
  [[nodiscard]] static std::size_t numbers(const schedule::Window& window) {
    return 2 + static_cast<std::size_t>(window.steps) * schedule::Watch::kLanes;
  }
  [[nodiscard]] std::vector<double> own_numbers();
  [[nodiscard]] schedule::Ran ran() const;
  void begin_window(Step first);
  void tell();
  [[nodiscard]] std::vector<schedule::Told> gathered();
  void judge();
  void begin_measuring(const schedule::Drift::Seen& drift);
  void measure();
  void plan_for(Cluster now, double tempo);

  Exchanger& exchanger_;
  Recorder& recorder_;
  Watched& watched_;
  int most_;
  schedule::Watch watch_;
  int lateness_ = 0;     // of what runs now
  Seconds step_time_{};  // the median over ranks in the last window that was judged

  schedule::Window window_;  // under way
  Clock::time_point began_;  // when numbers were told last
  Step began_at_ = 0;
  Seconds waited_{};                     // by then
  std::vector<ExchangeRecord> records_;  // of the window under way and later

  // Numbers of the last window on their way to all, as a flight on a lane of their own.
  FlightPtr gathering_;
  schedule::Window told_;
  Step since_ = 0;  // windows before it do not count

  std::string seen_;  // what was, in words
  double tempo_ = 1;  // beside what was seen of the network
  std::optional<Cluster> found_;
  std::unique_ptr<Slices> measuring_;
};

}  // namespace riffle::runtime
