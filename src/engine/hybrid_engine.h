// The engine of ranks that map each other's segments (processes for shm, threads for loopback), and
// of ranks on other hosts that are reached over a network; both may be in one world.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/heap.h"
#include "engine/liveness.h"
#include "engine/mailbox.h"
#include "engine/pump.h"
#include "engine/segment.h"
#include "riffle/engine.h"

namespace riffle::engine {

// A world as one rank sees it. Segments may be shared with other engines of this process.
struct HybridWorld {
  std::string name;  // of the engine
  Rank self = 0;
  std::vector<std::shared_ptr<Segment>> segments;  // by rank; mapped here, null: on another host
  std::vector<std::string> hosts;                  // by rank
  std::vector<int> pids;                           // by rank; 0: a thread, or on another host
  EngineOptions options;
  // Where there are other hosts: what reaches them, and where, by rank; empty for near ones.
  std::unique_ptr<Network> network = nullptr;
  std::unique_ptr<Beacon> beacon = nullptr;
  std::vector<std::string> addresses = {};
  std::vector<std::string> beacons = {};
};

class HybridEngine final : public Engine, public HostMemory {
 public:
  explicit HybridEngine(HybridWorld world);
  ~HybridEngine() override;
  HybridEngine(const HybridEngine&) = delete;
  HybridEngine& operator=(const HybridEngine&) = delete;

  [[nodiscard]] std::string_view name() const override { return world_.name; }
  [[nodiscard]] Rank rank() const override { return world_.self; }
  [[nodiscard]] int size() const override { return static_cast<int>(world_.hosts.size()); }
  [[nodiscard]] const std::string& host(Rank rank) const override;
  [[nodiscard]] Request send(Rank to, Tag tag, std::span<const std::byte> data) override;
  [[nodiscard]] Request receive(Rank from, Tag tag, std::span<std::byte> data) override;
  bool test(Request& request) override;
  void wait(Request& request, const Wait& how) override;
  std::size_t wait_any(std::span<Request> requests, const Wait& how) override;
  void await_any(std::span<const Request> requests, const Wait& how) override;
  [[nodiscard]] std::size_t bytes_on_the_way(Rank to) override {
    return mailbox_->bytes_on_the_way(checked(to));
  }
  void cancel(Request& request) noexcept override;
  [[nodiscard]] Buffer allocate(std::size_t bytes) override;
  [[nodiscard]] HostMemory* host_memory() override { return this; }
  [[nodiscard]] std::optional<CommFailure> failure(Rank rank) const override;
  void mark_failed(Rank rank, CommFailure failure) override;

  [[nodiscard]] const Group& ranks() const override { return host_ranks_; }
  [[nodiscard]] bool crowded() const override { return crowded_; }
  [[nodiscard]] std::byte* board(Rank rank) override;
  [[nodiscard]] std::size_t board_bytes() const override { return layout_.board_bytes(); }
  [[nodiscard]] std::optional<Location> locate(const std::byte* data,
                                               std::size_t bytes) const override;
  [[nodiscard]] std::byte* view(Rank rank, Location location, std::size_t bytes) override;
  void ring(std::span<const Rank> ranks, int bell) override;
  void wait(int bell, Ready ready, const Wait& how) override;

  // All have met: from now on a rank that is silent is failed.
  void all_joined() { liveness_->all_joined(); }

  // Faults, for tests.
  void stop_heart() { liveness_->stop_heart(); }
  void leave();

 private:
  void release(std::span<std::byte> bytes) noexcept override;
  [[nodiscard]] const Segment& segment(Rank rank) const;
  [[nodiscard]] bool near(Rank rank) const;
  void wake(Rank rank);
  void wake_own();
  void wait_for_mail(Ready ready, std::span<const Rank> also, const Wait& how);
  template <typename Sleep>
  void wait_on(const Sleep& sleep, Ready ready, std::span<const Rank> also, const Wait& how);
  [[noreturn]] void fail(Rank rank, CommFailure failure, const CommContext& context,
                         std::string_view detail) const;
  void throw_failed(std::span<const Rank> ranks, const CommContext& context) const;
  bool finish(Request& request, const CommContext& context);
  [[nodiscard]] Rank checked(Rank rank) const;

  HybridWorld world_;
  Layout layout_;
  Group host_ranks_;
  bool crowded_;
  Heap heap_;
  std::deque<SegmentHeader> far_;  // what is heard of ranks on other hosts
  bool has_left_ = false;
  std::unique_ptr<Liveness> liveness_;
  std::unique_ptr<Mailbox> mailbox_;
  std::unique_ptr<Pump> pump_;            // where there is a network
  std::atomic<Pump*> running_ = nullptr;  // the same, once other threads may look at it
};

}  // namespace riffle::engine
