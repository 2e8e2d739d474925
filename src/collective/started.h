// The calls that were started and are not done, by the thread that started them. Whoever waits for
// one call must move its thread's others along too: ranks may wait in different orders.
#pragma once

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace riffle {

class PatternOperation;

// Any thread.
class Started {
 public:
  void add(PatternOperation* operation) {
    const std::scoped_lock lock(mutex_);
    all_.emplace_back(std::this_thread::get_id(), operation);
  }
  void remove(PatternOperation* operation) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(all_, [&](const auto& each) { return each.second == operation; });
  }
  // Those of the calling thread but one.
  [[nodiscard]] std::vector<PatternOperation*> others(const PatternOperation* but) {
    const std::scoped_lock lock(mutex_);
    std::vector<PatternOperation*> mine;
    for (const auto& [thread, operation] : all_)
      if (thread == std::this_thread::get_id() && operation != but) mine.push_back(operation);
    return mine;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<std::thread::id, PatternOperation*>> all_;  // under mutex_
};

}  // namespace riffle
