#include "engine/pump.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>

#include "engine/blocked_signals.h"
#include "riffle/error.h"

namespace riffle {

namespace {

// After a wait our own thread takes over this late: most waits are followed by another soon, and
// waking a thread for each would cost more than it gives.
constexpr auto pause_after_waits = std::chrono::milliseconds(10);
constexpr auto longest_sleep = std::chrono::milliseconds(100);

void add(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  RIFFLE_CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
}

Descriptor watch(int first, int second) {
  Descriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  RIFFLE_CHECK(epoll.valid());
  add(epoll.get(), first);
  add(epoll.get(), second);
  return epoll;
}

void wait_on(int epoll, std::chrono::nanoseconds limit) {
  epoll_event event{};
  const auto time = std::chrono::ceil<std::chrono::milliseconds>(limit).count();
  epoll_wait(epoll, &event, 1, static_cast<int>(std::max<long>(0, time)));
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
      near_(near),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      waiting_(watch(news, wake_.get())),
      idle_(watch(news, stop_.get())) {
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
      wait_on(idle_.get(), longest_sleep);
    else
      sched_yield();  // there is news already
  }
}

void Pump::sleep(Bell& bell, HostMemory::Ready ready, std::chrono::nanoseconds limit) {
  if (!near_) {
    std::unique_lock place(place_, std::try_to_lock);
    if (place.owns_lock()) {
      sleep_on_network(ready, limit);
      place.unlock();
      bell.ring();  // a thread that found the place taken may have it now
      return;
    }
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
  if (!ready()) {
    if (mailbox_.arm())
      wait_on(waiting_.get(), limit);
    else
      sched_yield();
  }
  asleep_.store(false);
  take_signal(wake_.get());
}

void Pump::wake() {
  if (asleep_.load()) signal(wake_.get());
}

}  // namespace riffle
