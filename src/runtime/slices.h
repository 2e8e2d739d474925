// Work that is done between steps, a slice at a time: straight code on a thread of its own, which
// runs only while the one that trains waits for it.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace riffle::runtime {

class Slices {
 public:
  // `work` calls what it is given between two slices.
  using Rest = std::function<void()>;
  explicit Slices(std::function<void(const Rest&)> work);
  // Gives up what is left.
  ~Slices();
  Slices(const Slices&) = delete;
  Slices& operator=(const Slices&) = delete;

  // One slice. True: that was all. Throws what the work has thrown.
  bool run();

 private:
  struct GivenUp {};
  void rest();

  std::mutex mutex_;
  std::condition_variable turn_;
  // Guarded by mutex_.
  bool working_ = false;
  bool done_ = false;
  bool given_up_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // the last: it uses the others
};

}  // namespace riffle::runtime
