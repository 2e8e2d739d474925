// Sleeping on a word of memory that several processes map.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

namespace riffle::engine {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// Returns when woken, after `limit`, at a signal, or at once when the word is not `expected`.
inline void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                       std::chrono::nanoseconds limit) {
  timespec time{};
  time.tv_sec = static_cast<std::time_t>(limit.count() / 1'000'000'000);
  time.tv_nsec = static_cast<long>(limit.count() % 1'000'000'000);
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, &time, nullptr, 0);
}

inline void futex_wake_all(const std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace riffle::engine
