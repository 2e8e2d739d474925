// What takes minutes; shorter versions are in the other files.
#include "far_workers.h"

namespace riffle::test {
namespace {

TEST(HostsLong, TenThousandRandomCollectivesOfRandomGroups) {
  NEEDS_HOSTS();
  run_random_trials(FarWorld(4, 2), 10'000, Seconds(900));
}

TEST(HostsLong, SixtyFourWorkers) {
  NEEDS_HOSTS();
  run_random_trials(FarWorld(16, 4), 50, Seconds(600));
}

TEST(FarFailureLong, WhoComputesForAMinuteIsAlive) {
  NEEDS_HOSTS();
  compute_for(Seconds(60));
}

}  // namespace
}  // namespace riffle::test
