// A device that takes a trace's times instead of computing: everything but the arithmetic is real.
// Each worker has the speed, the jitter and the stragglers of the cluster, drawn as the simulator
// draws them, and follows events that make it slow.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/packet.h"
#include "riffle/change.h"
#include "riffle/cluster.h"
#include "riffle/trace.h"

namespace riffle::lab {

// What a lab tells its workers.
struct LabEnvironment {
  Cluster cluster;  // true, not slowed down
  double dilate = 1;
  double shrink = 1;
  std::vector<Change> events;  // of workers' speed
  Nanoseconds start = 0;       // of the clock of events
};
// Nothing where this process is not in a lab.
std::optional<LabEnvironment> read_lab_environment();

// Layers of 1/shrink of the elements, at least one each.
Trace shrunk(Trace trace, double shrink);

// Where a rank is: hosts have equally many, one after the other.
constexpr int host_of(int rank, int ranks, int hosts) {
  return static_cast<int>(std::int64_t{rank} * hosts / ranks);
}

class EmulatedCompute {
 public:
  // For the thread that makes it: its sleeps end on time from then on.
  EmulatedCompute(const Trace& trace, const LabEnvironment& environment, int host,
                  std::uint64_t seed = 1);

  // Draws how fast this step is.
  void begin_step(std::int64_t step);
  // Return when the device has done it.
  void forward(int layer);
  void backward(int layer);
  void optimizer_step();

  // By what the times of the step under way are multiplied, without dilation.
  [[nodiscard]] double factor() const { return factor_; }

 private:
  void take(Seconds time);
  [[nodiscard]] double slowness(Nanoseconds now) const;

  Trace trace_;
  LabEnvironment environment_;
  int host_;
  std::uint64_t seed_;
  double factor_ = 1;
  Nanoseconds returned_ = 0;   // when the last call did
  Nanoseconds overslept_ = 0;  // by so much too late
};

}  // namespace riffle::lab
