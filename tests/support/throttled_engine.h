// An engine whose links can be made slow, and fast again, while it is used: every message is real
// and goes over the engine below; the sender is held up first, as by a link that is busy so long.
#pragma once

#include <atomic>
#include <vector>

#include "riffle/engine.h"
#include "riffle/random.h"

namespace riffle::test {

// What each link takes from a sender; shared by all ranks, changed at any time.
class Throttle {
 public:
  explicit Throttle(int ranks) : ranks_(ranks), links_(static_cast<std::size_t>(ranks * ranks)) {}

  // Both ways.
  void set(Rank a, Rank b, Seconds per_message);
  void set_all(Seconds per_message);
  // Between the ranks below `first_of_second` and the others.
  void set_between(Rank first_of_second, Seconds per_message);
  // All links of a rank.
  void set_host(Rank rank, Seconds per_message);
  // Every message takes up to so many times as long, by chance.
  void set_jitter(double share) { jitter_ = share; }

  [[nodiscard]] Seconds of(Rank from, Rank to) const {
    return Seconds(links_[static_cast<std::size_t>(from * ranks_ + to)].load());
  }
  [[nodiscard]] double jitter() const { return jitter_; }

 private:
  int ranks_;
  std::vector<std::atomic<double>> links_;
  std::atomic<double> jitter_ = 0;
};

class ThrottledEngine : public Engine {
 public:
  ThrottledEngine(Engine& below, const Throttle& throttle) : below_(below), throttle_(throttle) {}

  [[nodiscard]] std::string_view name() const override { return "throttled"; }
  [[nodiscard]] Rank rank() const override { return below_.rank(); }
  [[nodiscard]] int size() const override { return below_.size(); }
  [[nodiscard]] const std::string& host(Rank rank) const override { return below_.host(rank); }
  [[nodiscard]] Request send(Rank to, Tag tag, std::span<const std::byte> data) override;
  [[nodiscard]] Request receive(Rank from, Tag tag, std::span<std::byte> data) override {
    return below_.receive(from, tag, data);
  }
  bool test(Request& request) override { return below_.test(request); }
  void wait(Request& request, const Wait& how) override { below_.wait(request, how); }
  std::size_t wait_any(std::span<Request> requests, const Wait& how) override {
    return below_.wait_any(requests, how);
  }
  void await_any(std::span<const Request> requests, const Wait& how) override {
    below_.await_any(requests, how);
  }
  void cancel(Request& request) noexcept override { below_.cancel(request); }
  [[nodiscard]] Buffer allocate(std::size_t bytes) override { return below_.allocate(bytes); }
  [[nodiscard]] HostMemory* host_memory() override { return below_.host_memory(); }
  [[nodiscard]] std::optional<CommFailure> failure(Rank rank) const override {
    return below_.failure(rank);
  }
  void mark_failed(Rank rank, CommFailure failure) override { below_.mark_failed(rank, failure); }

 private:
  // Buffers belong to the engine below.
  void release(std::span<std::byte> /*bytes*/) noexcept override {}

  Engine& below_;
  const Throttle& throttle_;
  std::atomic<std::uint64_t> sent_ = 0;
};

}  // namespace riffle::test
