// Jobs of one team, in the order they were added, one at a time.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace riffle::distributed {

class Queue {
 public:
  Queue() = default;
  ~Queue() { close(); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Jobs must not throw. They run on a thread of the queue's own, which starts with the first.
  // False after close(): nothing was done.
  bool add(std::function<void()> job);
  // Runs the job on the calling thread when nothing else runs or waits; else false: nothing was
  // done. For callers that would wait for it anyhow, which saves two changes of threads.
  bool run_here(const std::function<void()>& job);
  // Returns when all jobs are done; none is taken any more. Not from a job.
  void close();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool busy_ = false;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace riffle::distributed
