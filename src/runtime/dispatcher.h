// Runs flights: a thread per lane, each strictly in the order they were planned, which is the
// program's, so that lanes of all ranks agree; a lane waits for another only where its flight
// starts from the result of one there. The first error is kept; nothing is begun after it.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "runtime/flight.h"
#include "runtime/peer_monitor.h"
#include "runtime/recorder.h"

namespace riffle::runtime {

class Dispatcher {
 public:
  // `run` makes the collectives of a flight; `timeout` is that of one wait.
  Dispatcher(Engine& engine, std::function<void(Flight&)> run, Seconds timeout,
             PeerMonitor& monitor, Recorder& recorder);
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // Appends to its lane.
  void plan(FlightPtr flight);
  // Its snapshot is taken: the lane may run it.
  void start(Flight& flight);
  // Blocks until it is done; throws what failed.
  void wait(Flight& flight);
  void throw_if_failed();
  // Something that flights need has failed. Any thread.
  void fail(std::exception_ptr error);
  // Before the end: lets what was started come to its end for a moment, then gives it up. Peers are
  // told of the end only after it, or they would give up what we still take part in.
  void drain();
  // How a session that ends now ends.
  [[nodiscard]] Ending ending(Step steps);
  // Forgets what was planned and not started.
  void forget_planned();

 private:
  struct Lane {
    std::deque<FlightPtr> queue;
    FlightPtr running;
    std::condition_variable wake;
    std::thread thread;
  };
  // Its first flight has started, and so have ended those that it starts from.
  static bool may_run(const Lane& lane);
  void run(Lane& lane);
  void give_up();
  void look_at_running(std::unique_lock<std::mutex>& lock);

  Engine& engine_;
  std::function<void(Flight&)> run_;
  Seconds timeout_;
  PeerMonitor& monitor_;
  Recorder& recorder_;

  std::mutex mutex_;
  // Guarded by mutex_.
  std::map<int, Lane> lanes_;
  std::condition_variable done_;
  std::exception_ptr error_;
  bool stopping_ = false;
};

}  // namespace riffle::runtime
