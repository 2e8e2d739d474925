#include "engine/bell.h"

#include <sched.h>

#include <thread>

namespace riffle {

namespace {

// Cores this process may use, which a container or taskset may have cut down.
int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Patience Patience::of(int ranks_on_host) {
  if (ranks_on_host <= usable_cores()) return {.spins = 2000, .yields = 200};
  return {.spins = 0, .yields = 50};
}

bool look(const Patience& patience, HostMemory::Ready ready) {
  if (ready()) return true;
  for (int i = 0; i < patience.spins; ++i) {
    pause();
    if (ready()) return true;
  }
  for (int i = 0; i < patience.yields; ++i) {
    sched_yield();
    if (ready()) return true;
  }
  return false;
}

bool look_for_a_moment(HostMemory::Ready ready) {
  constexpr auto moment = std::chrono::microseconds(50);
  constexpr auto long_yield = std::chrono::microseconds(10);
  const auto start = Clock::now();
  auto now = start;
  while (now - start < moment) {
    if (ready()) return true;
    const auto before = Clock::now();
    sched_yield();
    now = Clock::now();
    if (now - before > long_yield) break;
  }
  return ready();
}

}  // namespace riffle
