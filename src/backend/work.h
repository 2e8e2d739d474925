// What torch gets back for a call: a Work, whose future is done when the call is.
#pragma once

#include <ATen/core/ivalue.h>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "distributed/team.h"

namespace riffle::backend {

// Errors as torch has them: DistBackendError for what peers and networks do, ValueError for calls
// that no member could answer.
std::exception_ptr translated(const std::exception_ptr& error);

class CallWork : public c10d::Work {
 public:
  CallWork(int rank, c10d::OpType type, const char* title,
           const std::optional<std::vector<at::Tensor>>& inputs, std::vector<at::Tensor> outputs);

  // Once, by whoever ends the call.
  void ended(const std::exception_ptr& error);
  void set_sequence(std::uint64_t sequence) { sequence_ = sequence; }

  std::vector<at::Tensor> result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  uint64_t getSequencenumber() const override { return sequence_; }

 private:
  std::vector<at::Tensor> outputs_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  std::uint64_t sequence_ = 0;
};

// A send or a receive.
class MessageWork : public CallWork {
 public:
  using CallWork::CallWork;
  void set_message(std::shared_ptr<distributed::Team> team,
                   std::shared_ptr<distributed::Message> message);

  bool isCompleted() override;
  bool wait(std::chrono::milliseconds timeout) override;
  int sourceRank() const override;

 private:
  std::shared_ptr<distributed::Team> team_;
  std::shared_ptr<distributed::Message> message_;
};

}  // namespace riffle::backend
