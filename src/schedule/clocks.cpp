#include "schedule/clocks.h"

#include <algorithm>

#include "riffle/error.h"

namespace riffle::schedule {

Clocks::Clocks(int members, int ahead)
    : ahead_(ahead),
      sent_(static_cast<std::size_t>(members)),
      waits_(static_cast<std::size_t>(members)) {}

std::vector<int> Clocks::sent(int member) {
  RIFFLE_CHECK(!waits(member));
  ++sent_[member];
  if (ahead_ < 0) return {member};
  waits_[member] = 1;
  const Step slowest = *std::ranges::min_element(sent_);
  std::vector<int> answered;
  for (int each = 0; each < static_cast<int>(sent_.size()); ++each)
    if (waits(each) && sent_[each] - slowest <= ahead_) {
      waits_[each] = 0;
      answered.push_back(each);
    }
  return answered;
}

}  // namespace riffle::schedule
