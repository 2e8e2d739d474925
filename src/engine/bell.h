// A bell in shared memory: one side sleeps until a condition holds, the other makes it hold and
// rings. Ringing costs a fence and a load when nobody sleeps.
#pragma once

#include <algorithm>

#include "engine/futex.h"
#include "riffle/engine.h"

namespace riffle::engine {

// Orders stores before it against loads after it. (The standard's fence is refused by
// ThreadSanitizer, which does not need it.)
inline void full_fence() {
  __sync_synchronize();
}

struct alignas(64) Bell {
  std::atomic<std::uint32_t> rings;
  std::atomic<std::uint32_t> sleepers;

  // The caller has made the condition true and passed a seq_cst fence since. Either the sleeper's
  // count is seen here, or the sleeper's last look at the condition came after it.
  void ring_after_fence() {
    if (sleepers.load(std::memory_order_relaxed) == 0) return;
    rings.fetch_add(1, std::memory_order_release);
    futex_wake_all(rings);
  }

  void ring() {
    full_fence();
    ring_after_fence();
  }

  // Sleeps until rung, for at most `limit`; not at all when ready().
  void sleep(HostMemory::Ready ready, std::chrono::nanoseconds limit) {
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t seen = rings.load(std::memory_order_acquire);
    full_fence();
    if (!ready()) futex_wait(rings, seen, limit);
    sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }
};

// Whether more ranks are on this host than cores that this process may use.
bool crowded(int ranks_on_host);

// How long to look before sleeping. Spinning helps only when every rank of the host has a core of
// its own, and then for longer than it takes to wake a sleeper: one late member would make all
// sleep. A yield with nobody else to run is a slow spin, and gives way where cores are shared. Both
// are bounded, so a blocked worker costs a millisecond, not a core.
struct Patience {
  int spins = 0;
  int yields = 0;
  static Patience of(bool crowded);
};

// Looks, spins and yields; true as soon as ready() is.
bool look(const Patience& patience, HostMemory::Ready ready);
// The same where a look is a call of the kernel and news comes from afar: yields for a moment, and
// not again once others have had the core for longer than it takes to be woken. The patient look
// for longer than a peer needs for a large piece: who sleeps must be woken, which costs both sides.
bool look_for_a_moment(bool patient, HostMemory::Ready ready);

}  // namespace riffle::engine
