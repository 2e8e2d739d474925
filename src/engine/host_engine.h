// The engine of ranks that map each other's segments: processes for shm, threads for loopback.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/heap.h"
#include "engine/liveness.h"
#include "engine/mailbox.h"
#include "engine/segment.h"
#include "riffle/engine.h"

namespace riffle {

// A world as one rank sees it. Segments may be shared with other engines of this process.
struct HostWorld {
  std::string name;  // of the engine
  Rank self = 0;
  std::vector<std::shared_ptr<Segment>> segments;  // by rank; mapped here
  std::vector<std::string> hosts;                  // by rank
  std::vector<int> pids;                           // by rank; 0: a thread
  EngineOptions options;
};

class HostEngine final : public Engine, public HostMemory {
 public:
  explicit HostEngine(HostWorld world);
  ~HostEngine() override;
  HostEngine(const HostEngine&) = delete;
  HostEngine& operator=(const HostEngine&) = delete;

  [[nodiscard]] std::string_view name() const override { return world_.name; }
  [[nodiscard]] Rank rank() const override { return world_.self; }
  [[nodiscard]] int size() const override { return static_cast<int>(world_.segments.size()); }
  [[nodiscard]] const std::string& host(Rank rank) const override;
  [[nodiscard]] Request send(Rank to, Tag tag, std::span<const std::byte> data) override;
  [[nodiscard]] Request receive(Rank from, Tag tag, std::span<std::byte> data) override;
  bool test(Request& request) override;
  void wait(Request& request, const Wait& how) override;
  std::size_t wait_any(std::span<Request> requests, const Wait& how) override;
  void await_any(std::span<const Request> requests, const Wait& how) override;
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

  // Faults, for tests.
  void stop_heart() { liveness_->stop_heart(); }
  void leave();

 private:
  void release(std::span<std::byte> bytes) noexcept override;
  [[nodiscard]] const Segment& segment(Rank rank) const;
  void wait_on(Bell& bell, Ready ready, std::span<const Rank> also, const Wait& how);
  [[noreturn]] void fail(Rank rank, CommFailure failure, const CommContext& context,
                         std::string_view detail) const;
  void throw_failed(std::span<const Rank> ranks, const CommContext& context) const;
  bool finish(Request& request, const CommContext& context);
  [[nodiscard]] Rank checked(Rank rank) const;

  HostWorld world_;
  Layout layout_;
  Group host_ranks_;
  bool crowded_;
  Heap heap_;
  std::unique_ptr<Liveness> liveness_;
  std::unique_ptr<Mailbox> mailbox_;
};

}  // namespace riffle
