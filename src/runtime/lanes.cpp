#include "runtime/lanes.h"

#include <algorithm>
#include <array>

#include "riffle/error.h"

namespace riffle::runtime {
namespace {

std::uint32_t bits(int first, int count) {
  return ((std::uint32_t{1} << count) - 1) << first;
}

// By lane, how many ranks keep it.
using Kept = std::array<double, collective::kControlLane>;

Kept kept_by(const collective::Control& control) {
  Kept kept{};
  for (int lane = 0; lane < collective::kControlLane; ++lane)
    kept.at(lane) = (control.collectives.kept_lanes() >> lane & 1) != 0 ? 1 : 0;
  if (control.ranks.size() > 1) control.all_reduce(kept, Reduction::sum);
  return kept;
}

}  // namespace

Lanes::Lanes(const collective::Control& control, int count, bool watched)
    : collectives_(control.collectives), count_(std::max(count, kLeastLanes) + (watched ? 1 : 0)) {
  const Kept kept = kept_by(control);
  const auto found = std::ranges::search_n(kept, count_, 0.0);
  if (found.empty())
    usage_error(
        "this engine has no {} lanes left for another session: close a session that is open on it, "
        "or give this one an engine of its own",
        count_);
  first_ = static_cast<int>(found.begin() - kept.begin());
  collectives_.keep_lanes(bits(first_, count_));
}

Lanes::~Lanes() {
  collectives_.release_lanes(bits(first_, count_));
}

int Lanes::at(int lane) const {
  if (lane < 0 || lane >= count_)
    usage_error("lane {}: the session keeps {}, as its first programs showed", lane, count_);
  return first_ + lane;
}

}  // namespace riffle::runtime
