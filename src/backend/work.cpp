#include "backend/work.h"

#include <ATen/core/jit_type.h>
#include <c10/util/Exception.h>

#include "riffle/error.h"

namespace riffle::backend {

std::exception_ptr translated(const std::exception_ptr& error) {
  if (error == nullptr) return nullptr;
  const c10::SourceLocation here{__func__, __FILE__, __LINE__};
  try {
    std::rethrow_exception(error);
  } catch (const distributed::TeamError& team) {
    return std::make_exception_ptr(c10::DistBackendError(here, team.what()));
  } catch (const CommError& comm) {
    return std::make_exception_ptr(c10::DistBackendError(here, comm.what()));
  } catch (const UsageError& usage) {
    return std::make_exception_ptr(c10::ValueError(here, usage.what()));
  } catch (...) {
    return error;
  }
}

CallWork::CallWork(int rank, c10d::OpType type, const char* title,
                   const std::optional<std::vector<at::Tensor>>& inputs,
                   std::vector<at::Tensor> outputs)
    : Work(rank, type, title, inputs),
      outputs_(std::move(outputs)),
      future_(
          c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))) {
}

void CallWork::ended(const std::exception_ptr& error) {
  const std::exception_ptr ours = translated(error);
  // First the future: who has waited for the work finds that its callbacks have run.
  if (ours != nullptr)
    future_->setError(ours);
  else
    future_->markCompleted(c10::IValue(outputs_));
  finish(ours);
}

void MessageWork::set_message(std::shared_ptr<distributed::Team> team,
                              std::shared_ptr<distributed::Message> message) {
  team_ = std::move(team);
  message_ = std::move(message);
}

bool MessageWork::isCompleted() {
  team_->test(*message_);
  return CallWork::isCompleted();
}

bool MessageWork::wait(std::chrono::milliseconds timeout) {
  const Seconds time = timeout == kNoTimeout ? Seconds{-1} : Seconds(timeout);
  TORCH_CHECK_WITH(DistBackendError, team_->wait(*message_, time),
                   "riffle: a message takes longer than ", timeout.count(), " ms");
  return CallWork::wait(kNoTimeout);
}

int MessageWork::sourceRank() const {
  return team_->member_of(message_->source());
}

}  // namespace riffle::backend
