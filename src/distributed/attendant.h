// Moves messages along that nobody waits for, so that a sender may compute and its receiver gets
// what was sent all the same, and futures are done on time.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace riffle::distributed {

class Attendant {
 public:
  Attendant() = default;
  ~Attendant() { close(); }
  Attendant(const Attendant&) = delete;
  Attendant& operator=(const Attendant&) = delete;

  // Calls `test` about every millisecond until it returns true. It must neither throw nor block.
  void attend(std::function<bool()> test);
  // Forgets all that it attends to.
  void close();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::function<bool()>> fresh_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace riffle::distributed
