#include "schedule/pace.h"

#include <algorithm>

#include "base/median.h"

namespace riffle::schedule {

bool Pace::look(const std::vector<Seconds>& busy, const std::vector<Seconds>& whole) {
  const Seconds usual = median(busy);
  const Seconds counts = std::max(kShare * median(whole), kNoise);
  bool changed = false;
  for (std::size_t i = 0; i < busy.size(); ++i) {
    const bool was_slow = factors_[i] > 1;
    const bool opposite = was_slow ? busy[i] < kUsual * usual
                                   : busy[i] > kSlowHost * usual && busy[i] - usual > counts;
    counts_[i] = opposite ? counts_[i] + 1 : 0;
    if (counts_[i] < kWindows) continue;
    counts_[i] = 0;
    factors_[i] = was_slow ? 1 : busy[i] / usual;
    changed = true;
  }
  return changed;
}

}  // namespace riffle::schedule
