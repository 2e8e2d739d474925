#include "runtime/pace.h"

#include <algorithm>

namespace riffle::runtime {

bool Pace::look(const std::vector<Seconds>& busy) {
  std::vector<Seconds> sorted = busy;
  std::ranges::sort(sorted);
  const Seconds usual = sorted[sorted.size() / 2];
  bool changed = false;
  for (std::size_t i = 0; i < busy.size(); ++i) {
    const bool was_slow = factors_[i] > 1;
    const bool opposite =
        was_slow ? busy[i] < kUsual * usual : busy[i] > kSlow * usual && busy[i] - usual > kNoise;
    counts_[i] = opposite ? counts_[i] + 1 : 0;
    if (counts_[i] < kWindows) continue;
    counts_[i] = 0;
    factors_[i] = was_slow ? 1 : busy[i] / usual;
    changed = true;
  }
  return changed;
}

}  // namespace riffle::runtime
