// An engine moves bytes between the ranks of one world. Start here for everything that
// communicates; collectives (collective.h) are built on this interface alone.
//
// Threads. Every function of an Engine and of its HostMemory may be called from any thread, by
// several at once. A Request belongs to one thread at a time. A Buffer may be freed by any thread.
//
// Progress. Bytes move inside send, receive, test and the waits: a call for one request moves all
// of the process's messages along. A rank that makes none of these calls sends and receives only
// what fits the engine's own buffers, so wait for what you started; heartbeats go on regardless.
//
// Waiting. Every wait has a deadline. A waiting thread spins (about a millisecond, only
// where no cores are shared), yields a bounded number of times and then sleeps; blocked workers
// cost next to nothing.
//
// Failure. Liveness is judged by heartbeats from a thread of their own, never by how long something
// takes: a peer that computes for a minute is alive. A rank is failed when its process is gone or
// its connection breaks, which is noticed in under two seconds; when it has merely been silent for
// EngineOptions::failure_timeout (stopped, cut off, its host switched off); or when mark_failed()
// says so. Failed is for good. What fails while nobody waits is kept and thrown by the next wait it
// concerns.
//
// After an error (a CommError from a wait or from test): the request is finished; its receive
// buffer is undefined, its send buffer untouched. Nothing of the request touches either buffer any
// more. All other requests, ranks and groups go on as before; requests that involve a failed rank
// keep failing with a CommError that names it.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "riffle/comm_error.h"
#include "riffle/world.h"

namespace riffle {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

inline Deadline after(Seconds time) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
}

// Names a message between two ranks. Messages of one sender, receiver and tag arrive in the order
// they were sent; different tags are independent. Convention of our collectives: `channel` is a
// hash of (group, lane), `sequence` counts the operations of that channel, `round` the messages of
// one operation.
struct Tag {
  std::uint64_t channel = 0;
  std::uint32_t sequence = 0;
  std::uint32_t round = 0;
  auto operator<=>(const Tag&) const = default;
};

// A message in flight: a small value, copied freely, that names the engine's own record. Every
// request must be finished by a wait, a test that returns true or throws, or a cancel.
class Request {
 public:
  Request() = default;
  explicit Request(std::uint64_t id) : id_(id) {}
  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] bool empty() const { return id_ == 0; }  // finished, or never started
 private:
  std::uint64_t id_ = 0;
};

// How a call waits.
struct Wait {
  // When to give up with CommFailure::timed_out.
  Deadline deadline;
  // Goes into the error.
  CommContext context;
  // The wait fails as soon as one of these has failed, naming it; the request's own peer is always
  // among them. A collective passes its group, so that every member learns who died and not only
  // the neighbours. A rank that has closed its engine in good order counts only where it is the
  // peer itself: it may have finished its part.
  std::span<const Rank> watch = {};
  // The waiting thread works beside others of its process that want the core: it sleeps soon
  // instead of spinning.
  bool background = false;
};

class Engine;
class HostMemory;

// Memory that the engine knows, zeroed, aligned to 64 bytes at least; host peers can view it where
// there is a HostMemory. Freed with its last owner; must not outlive its engine, and must not be
// freed while a collective or a request uses it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Engine* engine, std::span<std::byte> bytes) : engine_(engine), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept
      : engine_(std::exchange(other.engine_, nullptr)), bytes_(std::exchange(other.bytes_, {})) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(engine_, other.engine_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer();

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] std::byte* data() const { return bytes_.data(); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  // Leaves the memory to the engine, which keeps it to its end: peers may still be reading it.
  std::span<std::byte> keep() && {
    engine_ = nullptr;
    return std::exchange(bytes_, {});
  }
  // The buffer as elements of T.
  template <typename T>
  [[nodiscard]] std::span<T> as() const {
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

 private:
  Engine* engine_ = nullptr;
  std::span<std::byte> bytes_;
};

class Engine {
 public:
  virtual ~Engine() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;  // "shm", "loopback", ...
  [[nodiscard]] virtual Rank rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;  // ranks of the world, dead ones included
  // The host a rank runs on; equal text, same host.
  [[nodiscard]] virtual const std::string& host(Rank rank) const = 0;

  // Starts a message. `data` must stay valid and, for a send, unchanged until the request is
  // finished. A message to oneself is fine. An empty message is a message too. UsageError for a
  // rank outside the world; a failed rank is reported by the wait.
  [[nodiscard]] virtual Request send(Rank to, Tag tag, std::span<const std::byte> data) = 0;
  // The message must have exactly data.size() bytes, else CommFailure::mismatch names both sizes.
  [[nodiscard]] virtual Request receive(Rank from, Tag tag, std::span<std::byte> data) = 0;

  // True when the request is done (a send: `data` may be reused; that says nothing about the
  // receiver); throws CommError when it failed. Either way `request` is then empty. An empty
  // request is done.
  virtual bool test(Request& request) = 0;
  // Blocks until the request is done; CommError when it fails or the deadline passes, in which case
  // it is cancelled. `request` is empty afterwards.
  virtual void wait(Request& request, const Wait& how) = 0;
  // Blocks until one of them is done and says which; empty ones are skipped. CommError when one
  // fails or the deadline passes: then all of them are cancelled. UsageError when all are empty.
  virtual std::size_t wait_any(std::span<Request> requests, const Wait& how) = 0;
  // Blocks until test() of one of them would not be false; finishes and cancels nothing, so that
  // requests of several operations can be waited for together. CommError when the deadline passes
  // or a watched rank (there must be one) fails.
  virtual void await_any(std::span<const Request> requests, const Wait& how) = 0;
  // Waits for all of them, in any order; on an error all are cancelled.
  void wait_all(std::span<Request> requests, const Wait& how);
  // How many bytes are on the way to a rank of another host when the way is full (its latency times
  // its rate), as far as that was seen so far; 0: not known, or no way at all.
  [[nodiscard]] virtual std::size_t bytes_on_the_way(Rank) { return 0; }
  // Gives up a request: a receive that has not begun is forgotten and its message stays available
  // for another receive; one that has begun is drained and dropped; a send that has not begun is
  // never sent, one that has begun is completed from a copy.
  virtual void cancel(Request& request) noexcept = 0;

  // UsageError when there is not enough memory, said before it is touched; never SIGBUS. No other
  // rank takes part.
  [[nodiscard]] virtual Buffer allocate(std::size_t bytes) = 0;

  // What the ranks of this host share; nullptr for an engine that has none.
  [[nodiscard]] virtual HostMemory* host_memory() = 0;

  // Why a rank counts as failed, or nothing while it is alive.
  [[nodiscard]] virtual std::optional<CommFailure> failure(Rank rank) const = 0;
  // Declares a rank failed for this process (its own waits end within a moment): what a store's
  // membership service calls when it learns of a death first.
  virtual void mark_failed(Rank rank, CommFailure failure) = 0;

 private:
  friend class Buffer;
  virtual void release(std::span<std::byte> bytes) noexcept = 0;
};

// Throws the CommError of a rank that has failed; nothing while it is alive.
void throw_if_failed(const Engine& engine, Rank rank, const CommContext& context);

// What ranks of one host share: each has a segment that the others map, with a board in it (small,
// zeroed at the start, laid out by the collectives) and the buffers it has allocated. There is no
// ordering but what atomics in it give.
class HostMemory {
 public:
  // A condition to wait for; non-owning, called often, cheap, must not throw.
  class Ready {
   public:
    template <typename F>
    Ready(const F& f)
        : object_(&f),
          call_([](const void* object) { return (*static_cast<const F*>(object))(); }) {}
    bool operator()() const { return call_(object_); }

   private:
    const void* object_;
    bool (*call_)(const void*);
  };

  // Where something lies in a segment; the same number for all who map it.
  using Location = std::uint64_t;

  static constexpr int bells = 32;

  virtual ~HostMemory() = default;

  // All ranks of this host, ascending, ourselves included.
  [[nodiscard]] virtual const Group& ranks() const = 0;
  // More ranks on this host than cores: who waits stands in somebody's way.
  [[nodiscard]] virtual bool crowded() const = 0;
  // The board of a rank of this host: board_bytes() long, on a page boundary.
  [[nodiscard]] virtual std::byte* board(Rank rank) = 0;
  [[nodiscard]] virtual std::size_t board_bytes() const = 0;

  // Location of memory inside one of our own buffers; nothing for any other memory.
  [[nodiscard]] virtual std::optional<Location> locate(const std::byte* data,
                                                       std::size_t bytes) const = 0;
  // A peer's buffer, mapped here. CommError (mismatch) when the peer has no such memory.
  [[nodiscard]] virtual std::byte* view(Rank rank, Location location, std::size_t bytes) = 0;

  // Wakes whoever waits on `bell` of these ranks, after all stores before the call; next to free
  // when nobody sleeps.
  virtual void ring(std::span<const Rank> ranks, int bell) = 0;
  // Returns once ready() is true. Whoever makes it true must ring this bell of ours. The deadline
  // and the watched ranks end it as they end Engine::wait; `how.watch` must not be empty, and its
  // first rank is named when time runs out.
  virtual void wait(int bell, Ready ready, const Wait& how) = 0;
};

// RIFFLE_FAILURE_TIMEOUT of the environment, else 10 s. UsageError for a value that is no time, or
// not one between 100 ms and a day.
Seconds default_failure_timeout();

// What all engines take.
struct EngineOptions {
  // A rank that shows no sign of life for this long is failed: short enough that nobody waits for a
  // dead host for long, long enough that a paused machine is not a dead one. Detection takes at
  // most this and two intervals. The same for all ranks of a job.
  Seconds failure_timeout = default_failure_timeout();
  Seconds heartbeat_interval{0.05};
};

}  // namespace riffle
