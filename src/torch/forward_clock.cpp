#include "torch/forward_clock.h"

#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include <algorithm>

namespace riffle::adapter {
namespace {

// Callbacks of torch are plain functions: whose clock runs on a thread must be found from there.
// Several do where several models have a session each.
std::vector<ForwardClock*>& clocks_of_thread() {
  thread_local std::vector<ForwardClock*> clocks;
  return clocks;
}

std::unique_ptr<at::ObserverContext> begin_operation(const at::RecordFunction& operation) {
  for (ForwardClock* clock : clocks_of_thread()) clock->begin(operation);
  return nullptr;
}

void end_operation(const at::RecordFunction& /*operation*/, at::ObserverContext* /*context*/) {
  for (ForwardClock* clock : clocks_of_thread()) clock->end();
}

}  // namespace

ForwardClock::ForwardClock(Session& session, const std::vector<at::Tensor>& parameters)
    : session_(session) {
  if (!session.profiles()) return;
  for (std::size_t p = 0; p < parameters.size(); ++p)
    indices_[parameters[p].unsafeGetTensorImpl()] = static_cast<int>(p);
  clocks_of_thread().push_back(this);
  if (clocks_of_thread().size() > 1) {
    handle_ = clocks_of_thread().front()->handle_;
    return;
  }
  handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(begin_operation, end_operation)
                                           .needsInputs(true)
                                           .scopes({at::RecordScope::FUNCTION}));
}

void ForwardClock::stop() {
  if (handle_ == 0) return;
  std::erase(clocks_of_thread(), this);
  if (clocks_of_thread().empty()) at::removeCallback(handle_);
  handle_ = 0;
}

int ForwardClock::parameter_in(const at::RecordFunction& operation) const {
  const auto index_of = [&](const at::Tensor& tensor) {
    const auto found = indices_.find(tensor.unsafeGetTensorImpl());
    return found == indices_.end() ? -1 : found->second;
  };
  for (const c10::IValue& input : operation.inputs()) {
    if (input.isTensor())
      if (const int index = index_of(input.toTensor()); index >= 0) return index;
    if (input.isTensorList())
      for (const at::Tensor& tensor : input.toTensorVector())
        if (const int index = index_of(tensor); index >= 0) return index;
  }
  return -1;
}

void ForwardClock::begin(const at::RecordFunction& operation) {
  if (depth_++ > 0) return;
  // Neither backward nor an optimizer's step.
  parameter_ = at::GradMode::is_enabled() ? parameter_in(operation) : -1;
  if (parameter_ < 0 || in_forward_) return;
  in_forward_ = true;
  session_.begin_forward();
}

void ForwardClock::end() {
  depth_ = std::max(depth_ - 1, 0);
  if (depth_ == 0 && parameter_ >= 0) session_.forward_done(std::exchange(parameter_, -1));
}

}  // namespace riffle::adapter
