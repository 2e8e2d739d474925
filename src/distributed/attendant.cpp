#include "distributed/attendant.h"

#include <chrono>

#include "engine/blocked_signals.h"

namespace riffle::distributed {

void Attendant::attend(std::function<bool()> test) {
  const std::scoped_lock lock(mutex_);
  if (closed_) return;
  fresh_.push_back(std::move(test));
  if (!thread_.joinable()) {
    const engine::BlockedSignals blocked;
    thread_ = std::thread([this] { run(); });
  }
  changed_.notify_all();
}

void Attendant::close() {
  std::thread ended;
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
    ended = std::move(thread_);
  }
  if (ended.joinable()) ended.join();
}

void Attendant::run() {
  std::vector<std::function<bool()>> open;
  std::unique_lock lock(mutex_);
  while (!closed_) {
    if (open.empty())
      changed_.wait(lock, [&] { return closed_ || !fresh_.empty(); });
    else
      changed_.wait_for(lock, std::chrono::milliseconds(1), [&] { return closed_; });
    std::move(fresh_.begin(), fresh_.end(), std::back_inserter(open));
    fresh_.clear();
    lock.unlock();
    std::erase_if(open, [](const std::function<bool()>& test) { return test(); });
    lock.lock();
  }
}

}  // namespace riffle::distributed
