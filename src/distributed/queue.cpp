#include "distributed/queue.h"

#include "engine/blocked_signals.h"

namespace riffle::distributed {

bool Queue::add(std::function<void()> job) {
  const std::scoped_lock lock(mutex_);
  if (closed_) return false;
  jobs_.push_back(std::move(job));
  if (!thread_.joinable()) {
    const engine::BlockedSignals blocked;
    thread_ = std::thread([this] { run(); });
  }
  changed_.notify_all();
  return true;
}

bool Queue::run_here(const std::function<void()>& job) {
  {
    const std::scoped_lock lock(mutex_);
    if (closed_ || busy_ || !jobs_.empty()) return false;
    busy_ = true;
  }
  job();
  const std::scoped_lock lock(mutex_);
  busy_ = false;
  changed_.notify_all();
  return true;
}

void Queue::close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !busy_ && jobs_.empty(); });
  std::thread ended = std::move(thread_);
  lock.unlock();
  if (ended.joinable()) ended.join();
}

void Queue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !busy_ && (closed_ || !jobs_.empty()); });
    if (jobs_.empty()) return;
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    job();
    job = nullptr;  // what it held goes before others learn that it is done
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace riffle::distributed
