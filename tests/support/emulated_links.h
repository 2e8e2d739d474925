// An engine over links of known latency and bandwidth: messages are real and go over the engine
// below at once, but no receive is done before its message would have arrived. A sender's messages
// follow each other on its link; a receiver's link is never the narrow one.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "riffle/cluster.h"
#include "riffle/engine.h"

namespace riffle::test {

// The messages on their way; shared by all ranks.
class EmulatedLinks {
 public:
  EmulatedLinks(int ranks, const Link& link)
      : link_(link), free_(static_cast<std::size_t>(ranks), Clock::now()) {}

  void leave(Rank from, Rank to, Tag tag, std::size_t bytes);
  // When the next message of this name arrives, which is asked once; nothing before it has left.
  std::optional<Deadline> arrival(Rank from, Rank to, Tag tag);

 private:
  Link link_;
  std::mutex mutex_;
  std::vector<Deadline> free_;  // by sender: when its link is
  std::map<std::tuple<Rank, Rank, Tag>, std::deque<Deadline>> arrivals_;
};

class EmulatedEngine : public Engine {
 public:
  EmulatedEngine(Engine& below, EmulatedLinks& links) : below_(below), links_(links) {}

  [[nodiscard]] std::string_view name() const override { return "emulated"; }
  [[nodiscard]] Rank rank() const override { return below_.rank(); }
  [[nodiscard]] int size() const override { return below_.size(); }
  [[nodiscard]] const std::string& host(Rank rank) const override { return below_.host(rank); }
  [[nodiscard]] Request send(Rank to, Tag tag, std::span<const std::byte> data) override;
  [[nodiscard]] Request receive(Rank from, Tag tag, std::span<std::byte> data) override;
  bool test(Request& request) override;
  void wait(Request& request, const Wait& how) override;
  std::size_t wait_any(std::span<Request> requests, const Wait& how) override;
  void await_any(std::span<const Request> requests, const Wait& how) override;
  void cancel(Request& request) noexcept override;
  [[nodiscard]] Buffer allocate(std::size_t bytes) override { return below_.allocate(bytes); }
  [[nodiscard]] HostMemory* host_memory() override { return nullptr; }
  [[nodiscard]] std::optional<CommFailure> failure(Rank rank) const override {
    return below_.failure(rank);
  }
  void mark_failed(Rank rank, CommFailure failure) override { below_.mark_failed(rank, failure); }

 private:
  // A request of the engine below, which is moved on there at once.
  struct Open {
    Rank from = -1;  // of a receive
    Tag tag = {};
    bool is_done = false;  // below
    std::optional<Deadline> arrival = {};
  };

  // Buffers belong to the engine below.
  void release(std::span<std::byte> /*bytes*/) noexcept override {}
  // True when it is done below and, for a receive, would have arrived.
  bool is_ready(const Request& request);

  Engine& below_;
  EmulatedLinks& links_;
  std::mutex mutex_;
  std::map<std::uint64_t, Open> open_;  // by request; under mutex_
};

}  // namespace riffle::test
