// Who is alive. A thread of its own beats this rank's heart and listens to the others', so neither
// depends on what the workers compute. A process that ends is noticed at once (pidfd), one that is
// stopped when its heart has been silent for the failure timeout.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/layout.h"
#include "riffle/engine.h"

namespace riffle {

class Liveness {
 public:
  // headers[r] is rank r's segment, pids[r] its process (0: not watched by process, as for threads
  // of one process). `on_failure` runs on the liveness thread whenever a rank was found failed.
  Liveness(Rank self, std::vector<SegmentHeader*> headers, const std::vector<int>& pids,
           const EngineOptions& options, std::function<void()> on_failure);
  ~Liveness();
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

  // Why a rank can no longer be talked to, be it that it has left in good order.
  [[nodiscard]] std::optional<CommFailure> failure(Rank rank) const;
  // Whether it has failed while it still took part.
  [[nodiscard]] bool broken(Rank rank) const;
  // What is known beyond the kind, for the error.
  [[nodiscard]] std::string detail(Rank rank) const;
  void mark_failed(Rank rank, CommFailure failure);
  // The heart stops and the others are no longer listened to, as if the process were stopped.
  void stop_heart() { frozen_.store(true); }

 private:
  void run();
  bool check_processes(int timeout_milliseconds);
  bool check_hearts(std::chrono::nanoseconds passed);
  bool declare(Rank rank, CommFailure failure);

  static constexpr std::uint8_t alive = 0xff;

  Rank self_;
  std::vector<SegmentHeader*> headers_;
  EngineOptions options_;
  std::function<void()> on_failure_;
  std::vector<std::atomic<std::uint8_t>> failed_;  // a CommFailure, or alive
  std::vector<std::uint64_t> beats_;               // last seen
  std::vector<std::chrono::nanoseconds> silence_;  // since they last grew, in time we ran ourselves
  std::vector<int> pidfds_;                        // -1: none
  int stop_fd_ = -1;
  std::atomic<bool> frozen_ = false;
  std::thread thread_;
};

}  // namespace riffle
