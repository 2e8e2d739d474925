#include "engine/bell.h"

#include <sched.h>

#include <thread>

namespace riffle::engine {

namespace {

constexpr int pauses_between_looks = 4;

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

bool crowded(int ranks_on_host) {
  return ranks_on_host > usable_cores();
}

Patience Patience::of(bool crowded) {
  if (crowded) return {.spins = 0, .yields = 50};
  return {.spins = 15000, .yields = 200};
}

bool look(const Patience& patience, HostMemory::Ready ready) {
  if (ready()) return true;
  for (int i = 0; i < patience.spins; ++i) {
    // Looking takes the cache line away from the one who is about to write it.
    for (int j = 0; j < pauses_between_looks; ++j) pause();
    if (ready()) return true;
  }
  for (int i = 0; i < patience.yields; ++i) {
    sched_yield();
    if (ready()) return true;
  }
  return false;
}

bool look_for_a_moment(bool patient, HostMemory::Ready ready) {
  const auto moment = std::chrono::microseconds(patient ? 1000 : 50);
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

}  // namespace riffle::engine
