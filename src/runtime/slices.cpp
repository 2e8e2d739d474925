#include "runtime/slices.h"

namespace riffle::runtime {

Slices::Slices(std::function<void(const Rest&)> work) {
  thread_ = std::thread([this, work = std::move(work)] {
    std::unique_lock lock(mutex_);
    turn_.wait(lock, [this] { return working_ || given_up_; });
    const bool wanted = !given_up_;
    lock.unlock();
    try {
      if (wanted) work([this] { rest(); });
    } catch (const GivenUp&) {
      // Nobody waits for the result.
    } catch (...) {
      error_ = std::current_exception();
    }
    lock.lock();
    working_ = false;
    done_ = true;
    turn_.notify_all();
  });
}

Slices::~Slices() {
  {
    const std::scoped_lock lock(mutex_);
    given_up_ = true;
  }
  turn_.notify_all();
  thread_.join();
}

void Slices::rest() {
  std::unique_lock lock(mutex_);
  working_ = false;
  turn_.notify_all();
  turn_.wait(lock, [this] { return working_ || given_up_; });
  if (given_up_) throw GivenUp{};
}

bool Slices::run() {
  std::unique_lock lock(mutex_);
  if (!done_) {
    working_ = true;
    turn_.notify_all();
    turn_.wait(lock, [this] { return !working_; });
  }
  if (error_) std::rethrow_exception(error_);
  return done_;
}

}  // namespace riffle::runtime
