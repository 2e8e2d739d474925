// Who is alive. A thread of its own beats this rank's heart and listens to the others', so neither
// depends on what the workers compute. A process of this host that ends is noticed at once (pidfd),
// one that is stopped when its heart has been silent for the failure timeout. Ranks of other hosts
// are heard through a Beacon: a host or link that is gone is silence too, and a link that is cut
// one way is told by the end that no longer hears.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/beacon.h"
#include "engine/layout.h"
#include "riffle/engine.h"

namespace riffle::engine {

class Liveness {
 public:
  // headers[r] is rank r's segment, pids[r] its process (0: not watched by process, as for threads
  // of one process). `beacon` hears ranks of other hosts; null where there are none. `on_failure`
  // runs on the liveness thread whenever a rank was found failed.
  Liveness(Rank self, std::vector<SegmentHeader*> headers, const std::vector<int>& pids,
           Beacon* beacon, const EngineOptions& options, std::function<void()> on_failure);
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
  // Something has come from a rank of another host: who sends is alive, however full the way is.
  void mark_heard(Rank rank);
  // A rank of another host has closed its engine in good order, having found `culprit` failed (-1:
  // nobody).
  void mark_left(Rank rank, Rank culprit);
  // The rank that one which has left was lost to, or -1.
  [[nodiscard]] Rank culprit(Rank rank) const {
    return culprits_[static_cast<std::size_t>(rank)].load();
  }
  // All ranks have joined: from now on silence counts, also of those not heard yet.
  void all_joined() { joined_.store(true); }
  // Stops; with a beacon the other hosts are told that we leave in good order.
  void leave();
  // The heart stops and the others are no longer listened to, as if the process were stopped.
  void stop_heart() { frozen_.store(true); }

 private:
  void run();
  void stop();
  bool sleep(Deadline until);
  bool listen();
  void beat();
  bool heard_as_failed_by(Rank rank);
  bool check_hearts(std::chrono::nanoseconds passed);
  void listen_to_hearts(std::chrono::nanoseconds passed);
  [[nodiscard]] bool is_expected(std::size_t rank) const;
  [[nodiscard]] bool is_cut_off() const;
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
  Beacon* beacon_;
  int beats_between_beacons_ = 1;
  std::uint64_t rounds_ = 0;
  Deadline stopped_until_{};                 // when we were last found not to have run
  std::vector<std::atomic<Rank>> culprits_;  // of ranks that have left
  std::vector<std::atomic<bool>> deaf_;      // ranks that no longer hear us
  std::atomic<bool> joined_;
  int stop_fd_ = -1;
  std::atomic<bool> frozen_ = false;
  std::thread thread_;
};

}  // namespace riffle::engine
