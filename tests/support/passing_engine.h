// An engine that passes every call on to another: what tests that count or hold up derive from.
#pragma once

#include "riffle/engine.h"

namespace riffle::test {

class PassingEngine : public Engine {
 public:
  explicit PassingEngine(Engine& below) : below_(below) {}

  [[nodiscard]] std::string_view name() const override { return below_.name(); }
  [[nodiscard]] Rank rank() const override { return below_.rank(); }
  [[nodiscard]] int size() const override { return below_.size(); }
  [[nodiscard]] const std::string& host(Rank rank) const override { return below_.host(rank); }
  [[nodiscard]] Request send(Rank to, Tag tag, std::span<const std::byte> data) override {
    return below_.send(to, tag, data);
  }
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
};

}  // namespace riffle::test
