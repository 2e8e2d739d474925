#include "engine/pump.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>

#include <algorithm>

#include "engine/blocked_signals.h"
#include "riffle/error.h"

namespace riffle::engine {

namespace {

// After a wait our own thread takes over this late: most waits are followed by another soon, and
// waking a thread for each would cost more than it gives.
constexpr auto pause_after_waits = std::chrono::milliseconds(10);
constexpr auto longest_sleep = std::chrono::milliseconds(100);
// To fall asleep: what has just come must be taken first.
constexpr int most_tries = 8;

void wait_for(int news, int other, std::chrono::nanoseconds limit) {
  pollfd watched[] = {{.fd = news, .events = POLLIN, .revents = 0},
                      {.fd = other, .events = POLLIN, .revents = 0}};
  const auto time = std::chrono::ceil<std::chrono::milliseconds>(limit).count();
  poll(watched, 2, static_cast<int>(std::max<long>(0, time)));
}

void signal(int eventfd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(eventfd, &one, sizeof one);
}

bool take_signal(int eventfd) {
  std::uint64_t count = 0;
  return read(eventfd, &count, sizeof count) == sizeof count;
}

}  // namespace

Pump::Pump(Mailbox& mailbox, int news, bool near)
    : mailbox_(mailbox),
      news_(news),
      near_(near),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  RIFFLE_CHECK(wake_.valid() && stop_.valid());
  const BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
}

Pump::~Pump() {
  signal(stop_.get());
  calls_.fetch_add(1);
  futex_wake_all(calls_);
  thread_.join();
}

void Pump::run() {
  while (!take_signal(stop_.get())) {
    const std::uint32_t seen = calls_.load();
    if (busy_.load() > 0) {
      futex_wait(calls_, seen, pause_after_waits);
      continue;
    }
    mailbox_.progress();
    if (mailbox_.arm())
      wait_for(news_, stop_.get(), longest_sleep);
    else
      sched_yield();  // there is news already
  }
}

void Pump::sleep(Bell& bell, HostMemory::Ready ready, std::chrono::nanoseconds limit) {
  if (!near_ && !place_taken_.exchange(true)) {
    sleep_on_network(ready, limit);
    place_taken_.store(false);
    bell.ring();  // a thread that found the place taken may have it now
    return;
  }
  if (busy_.fetch_sub(1) == 1) {
    calls_.fetch_add(1);
    futex_wake_all(calls_);
  }
  bell.sleep(ready, limit);
  busy_.fetch_add(1);
}

void Pump::sleep_on_network(HostMemory::Ready ready, std::chrono::nanoseconds limit) {
  asleep_.store(true);
  for (int tries = 0; tries < most_tries && !ready(); ++tries) {
    if (!mailbox_.arm()) continue;
    wait_for(news_, wake_.get(), limit);
    break;
  }
  asleep_.store(false);
  take_signal(wake_.get());
}

void Pump::wake() {
  if (asleep_.load()) signal(wake_.get());
}

}  // namespace riffle::engine
