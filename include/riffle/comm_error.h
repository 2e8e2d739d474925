// A peer or the network failed. A CommError says who, where and in the middle of what, so that one
// line of a log is enough to find the host to look at.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "riffle/world.h"

namespace riffle {

// What the caller was doing; the engine puts it into the CommError and does nothing else with it.
// Views only: what they point to must live as long as the call.
struct CommContext {
  const Group* group = nullptr;
  std::string_view operation;  // "all_reduce", "receive", ...
  int bucket = -1;             // -1 where there is none
  Step step = -1;
};

enum class CommFailure {
  died,       // its process is gone, or its connection was reset
  frozen,     // its process exists but its heartbeat has stopped
  absent,     // it never joined
  timed_out,  // it lives, and the deadline of the call has passed
  mismatch,   // it made another call than ours: other size, dtype, operation or order
  aborted,    // it gave up a call that it shares with us, or was told to
};
std::string_view name_of(CommFailure failure);

class CommError : public std::runtime_error {
 public:
  // `detail` is what only the thrower knows: "no heartbeat for 1.2 s", the two calls that differ.
  CommError(CommFailure failure, Rank rank, std::string host, const CommContext& context,
            std::string_view detail);

  [[nodiscard]] CommFailure failure() const { return failure_; }
  // The rank that failed, or that we waited for; -1 where it is not known.
  [[nodiscard]] Rank rank() const { return rank_; }
  [[nodiscard]] const std::string& host() const { return host_; }
  [[nodiscard]] const Group& group() const { return group_; }  // empty where there is none
  [[nodiscard]] const std::string& operation() const { return operation_; }
  [[nodiscard]] int bucket() const { return bucket_; }
  [[nodiscard]] Step step() const { return step_; }

 protected:
  // About a peer that is no rank, in words of its own.
  CommError(CommFailure failure, std::string host, std::string operation,
            const std::string& message);

 private:
  CommFailure failure_;
  Rank rank_;
  std::string host_;
  Group group_;
  std::string operation_;
  int bucket_;
  Step step_;
};

}  // namespace riffle
