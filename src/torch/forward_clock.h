// Tells a session when layers end in forward, while it measures. libtorch has no forward hooks, but
// every operation can be observed: one that is given a parameter belongs to that layer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "riffle/session.h"

namespace at {
struct RecordFunction;
}

namespace riffle::adapter {

class ForwardClock {
 public:
  // Observes operations of the calling thread, from now on until stop().
  ForwardClock(Session& session, const std::vector<at::Tensor>& parameters);
  ~ForwardClock() { stop(); }
  ForwardClock(const ForwardClock&) = delete;
  ForwardClock& operator=(const ForwardClock&) = delete;

  void stop();
  // A gradient has come: what is used from now on begins another forward.
  void end_forward() { in_forward_ = false; }

  // For torch's callbacks: an operation of this thread begins, and ends.
  void begin(const at::RecordFunction& operation);
  void end();

 private:
  [[nodiscard]] int parameter_in(const at::RecordFunction& operation) const;

  Session& session_;
  std::unordered_map<const void*, int> indices_;  // of parameters
  std::uint64_t handle_ = 0;                      // 0: stopped
  bool in_forward_ = false;
  int depth_ = 0;       // operations call each other: the outermost counts
  int parameter_ = -1;  // that it was given; below 0: none
};

}  // namespace riffle::adapter
