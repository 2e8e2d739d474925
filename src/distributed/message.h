// One message between two members of a team that is under way, either end of it. A letter that says
// what comes goes before the data, on a tag of its own; the receiver compares.
#pragma once

#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <string>

#include "riffle/engine.h"
#include "riffle/trace.h"

namespace riffle::distributed {

struct Letter {
  std::uint64_t bytes = 0;
  std::uint64_t dtype = 0;
  bool operator==(const Letter&) const = default;
};

// Called once, with the error or nothing; must not throw.
using Done = std::function<void(std::exception_ptr)>;

class Message {
 public:
  struct What {
    std::string operation;  // "send", "recv"
    Rank peer = -1;         // of the world; -1: whoever sends first
    int tag = 0;
    std::span<std::byte> data;  // stays valid until done
    std::uint64_t dtype = 0;    // a number that both ends give to the type
    Deadline deadline;          // then it fails
    const Group* group = nullptr;
  };
  Message(Engine& engine, What what, Done done)
      : engine_(engine), what_(std::move(what)), done_(std::move(done)) {}
  ~Message() { cancel(); }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  [[nodiscard]] const What& what() const { return what_; }
  [[nodiscard]] Letter letter() const { return {what_.data.size(), what_.dtype}; }
  // Where a request reads the letter from, or writes it to.
  [[nodiscard]] Letter& envelope() { return envelope_; }

  // CommError (mismatch) where what came is not what is expected.
  void check_letter() const;

  // The requests are under way; of a receive from anybody, now that its sender is known.
  void start(Rank peer, Request letter, Request data);
  // What the letter of a receive says was read elsewhere.
  void fail(const std::exception_ptr& error);

  // True when done, well or not; `done` was called before. Never blocks for long.
  bool test();
  // Blocks until done, or `until`: then false, and it goes on. It must have been started.
  bool wait(Deadline until);
  [[nodiscard]] bool started() const { return started_; }
  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] Rank source() const { return what_.peer; }
  [[nodiscard]] CommContext context() const {
    return {.group = what_.group, .operation = what_.operation, .bucket = -1, .step = -1};
  }

 private:
  template <typename Step>
  bool guarded(const Step& step);
  void finish(const std::exception_ptr& error);
  void throw_if_late() const;
  void cancel();

  Engine& engine_;
  What what_;
  Done done_;
  Letter envelope_;
  std::mutex mutex_;
  Request letter_;
  Request data_;
  std::atomic<bool> started_ = false;
  std::atomic<bool> finished_ = false;
};

}  // namespace riffle::distributed
