// What computing takes on this rank, layer by layer: the forward of each, the time to each gradient
// in the order in which they come, the optimizer. The clock stands still while the session
// exchanges, waits and merges, and while a bucket is updated. Any thread.
#pragma once

#include <mutex>
#include <vector>

#include "riffle/engine.h"
#include "riffle/trace.h"

namespace riffle::runtime {

class Profile {
 public:
  // The first steps warm up: pages, caches, lazily made optimizer state.
  static constexpr int kWarmUp = 2;
  // So many steps more are enough to plan on.
  static constexpr int kEnough = 3;

  // Keeps the times of `steps` steps after the warm-up, at least kEnough.
  Profile(std::size_t layers, int steps);

  // --- Points of the step under way; see Session.
  void begin_forward();
  void forward_done(int layer);
  void end_forward();
  void gradient(int layer);
  void backward_done();
  void optimizer(Seconds took);
  void end_step();
  // The clock stands still between the two.
  void stop();
  void go_on();

  // Times of the step under way are kept.
  [[nodiscard]] bool is_wanted() const;
  // Enough steps have passed to plan on; counted alike on all ranks.
  [[nodiscard]] bool is_enough() const;
  // All steps that were asked for have been kept.
  [[nodiscard]] bool is_complete() const;
  [[nodiscard]] bool is_empty() const;
  // The trace with medians of what was measured in the place of its times, as it is where nothing
  // was.
  [[nodiscard]] Trace measured(Trace trace) const;

 private:
  struct Times {
    std::vector<double> forward;   // in seconds, by layer; below 0: not known
    std::vector<double> backward;  // the same
    double optimizer = 0;
    double unassigned = 0;  // of a forward whose layers were not reported
    bool any = false;       // a gradient has come
  };
  [[nodiscard]] Times empty() const;
  [[nodiscard]] double take();  // the time since the last point
  void begin_pass();
  [[nodiscard]] static double typical(std::vector<double> values);
  [[nodiscard]] std::vector<double> typical_by_layer(std::vector<double> Times::* times) const;

  std::size_t layers_;
  int wanted_;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  int steps_ = 0;  // that have ended
  Times now_;
  std::vector<Times> kept_;
  bool in_pass_ = false;  // between the beginning of forward and the end of backward
  bool running_ = false;
  int last_forward_ = -1;  // the layer of this forward that was reported last
  Clock::time_point since_;
  Seconds spent_{};  // before since_, since the last point
};

}  // namespace riffle::runtime
