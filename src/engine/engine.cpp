#include "riffle/engine.h"

namespace riffle {

Buffer::~Buffer() {
  if (engine_ != nullptr) engine_->release(bytes_);
}

void Engine::wait_all(std::span<Request> requests, const Wait& how) {
  try {
    for (Request& request : requests) wait(request, how);
  } catch (...) {
    for (Request& request : requests) cancel(request);
    throw;
  }
}

void throw_if_failed(const Engine& engine, Rank rank, const CommContext& context) {
  if (const auto failure = engine.failure(rank))
    throw CommError(*failure, rank, engine.host(rank), context, "");
}

}  // namespace riffle
