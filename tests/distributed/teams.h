// Teams of a loopback world, and calls that are waited for.
#pragma once

#include <atomic>
#include <future>

#include "distributed/team.h"
#include "support/ranks.h"

namespace riffle::distributed::test {

// The engine belongs to the loopback world.
class Borrowed final : public Engine {
 public:
  explicit Borrowed(Engine& engine) : engine_(engine) {}
  [[nodiscard]] std::string_view name() const override { return engine_.name(); }
  [[nodiscard]] Rank rank() const override { return engine_.rank(); }
  [[nodiscard]] int size() const override { return engine_.size(); }
  [[nodiscard]] const std::string& host(Rank rank) const override { return engine_.host(rank); }
  [[nodiscard]] Request send(Rank to, Tag tag, std::span<const std::byte> data) override {
    ++messages_;
    return engine_.send(to, tag, data);
  }
  [[nodiscard]] Request receive(Rank from, Tag tag, std::span<std::byte> data) override {
    ++messages_;
    return engine_.receive(from, tag, data);
  }
  bool test(Request& request) override { return engine_.test(request); }
  void wait(Request& request, const Wait& how) override { engine_.wait(request, how); }
  std::size_t wait_any(std::span<Request> requests, const Wait& how) override {
    return engine_.wait_any(requests, how);
  }
  void await_any(std::span<const Request> requests, const Wait& how) override {
    engine_.await_any(requests, how);
  }
  void cancel(Request& request) noexcept override { engine_.cancel(request); }
  [[nodiscard]] Buffer allocate(std::size_t bytes) override { return engine_.allocate(bytes); }
  [[nodiscard]] HostMemory* host_memory() override { return engine_.host_memory(); }
  [[nodiscard]] std::optional<CommFailure> failure(Rank rank) const override {
    return engine_.failure(rank);
  }
  void mark_failed(Rank rank, CommFailure failure) override { engine_.mark_failed(rank, failure); }
  // Sent and received so far.
  [[nodiscard]] int messages() const { return messages_; }

 private:
  void release(std::span<std::byte> /*bytes*/) noexcept override {}  // buffers name their engine
  Engine& engine_;
  std::atomic<int> messages_ = 0;
};

inline int messages_of(World& world) {
  return dynamic_cast<const Borrowed&>(world.engine()).messages();
}

inline std::shared_ptr<World> world_of(LoopbackWorld& loopback, Rank rank) {
  return std::make_shared<World>(std::make_unique<Borrowed>(loopback.engine(rank)));
}

// A call under way; get() throws what it failed with.
inline std::future<void> start(Team& team, std::string name, std::function<void(TeamCall&)> body,
                               bool here = false, Seconds timeout = Seconds{30}) {
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> future = done->get_future();
  team.start({.name = std::move(name),
              .timeout = timeout,
              .here = here,
              .body = std::move(body),
              .done = [done](const std::exception_ptr& error) {
                if (error != nullptr)
                  done->set_exception(error);
                else
                  done->set_value();
              }});
  return future;
}

}  // namespace riffle::distributed::test
