#include "distributed/world.h"

#include <thread>

namespace riffle::distributed {

bool World::rest(Seconds most) const {
  for (const Deadline end = after(most); held_.use_count() > 1;) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace riffle::distributed
