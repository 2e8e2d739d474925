// Keeps the network moving. A thread that waits moves it itself: it looks, yields, and where all
// peers are far it also sleeps on the network's descriptor. Whenever nobody does, a thread of our
// own sleeps there, so that no peer is left waiting while this rank computes.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "base/descriptor.h"
#include "engine/bell.h"
#include "engine/mailbox.h"

namespace riffle::engine {

class Pump {
 public:
  // `news` is the network's descriptor. `near`: ranks of this host may ring our bell, so a waiting
  // thread must sleep there and not on the network.
  Pump(Mailbox& mailbox, int news, bool near);
  ~Pump();
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  // While one exists its thread moves the network, so ours need not.
  class Busy {
   public:
    explicit Busy(Pump* pump) : pump_(pump) {
      if (pump_ != nullptr) pump_->busy_.fetch_add(1);
    }
    ~Busy() {
      if (pump_ != nullptr) pump_->busy_.fetch_sub(1);
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    Pump* pump_;
  };

  // For a thread that is Busy: sleeps until there is news or the bell rings, for at most `limit`.
  void sleep(Bell& bell, HostMemory::Ready ready, std::chrono::nanoseconds limit);
  // Ends such a sleep, besides the bell.
  void wake();

 private:
  void run();
  void sleep_on_network(HostMemory::Ready ready, std::chrono::nanoseconds limit);

  Mailbox& mailbox_;
  int news_;
  bool near_;
  Descriptor wake_;                        // an eventfd
  Descriptor stop_;                        // an eventfd
  std::atomic<bool> place_taken_ = false;  // of the one waiting thread that sleeps on the network
  std::atomic<bool> asleep_ = false;       // it does
  std::atomic<int> busy_ = 0;              // threads that move the network themselves
  std::atomic<std::uint32_t> calls_ = 0;   // grows when our own thread is needed now
  std::thread thread_;
};

}  // namespace riffle::engine
