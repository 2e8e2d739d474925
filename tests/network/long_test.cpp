// What takes minutes; shorter versions are in the other files.
#include <thread>

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
  compute_for(Seconds(60), {.failure_timeout = Seconds(1)});
}

// The setting is the only clock: neither TCP nor UCX gives up a connection that nobody used while
// its link was cut.
TEST(FarFailureLong, ALinkIsCutForLessThanALongSetting) {
  NEEDS_HOSTS();
  const FarWorld world(2, 1);
  Workers workers(2, [&](Rank rank) {
    const FarEngine joined = world.join(rank, {.failure_timeout = Seconds(120)});
    Collectives collectives(*joined.engine);
    std::vector<float> values(20'000, 1);
    collectives.all_reduce(Group({0, 1}), tensor_view(values));
    std::this_thread::sleep_for(std::chrono::seconds(50));
    collectives.all_reduce(Group({0, 1}), tensor_view(values));
    EXPECT_EQ(values.front(), 1);  // the mean
  });
  std::this_thread::sleep_for(std::chrono::seconds(3));
  world.cut(1);
  std::this_thread::sleep_for(std::chrono::seconds(40));
  world.mend(1);
  EXPECT_EQ(workers.wait_all(Seconds(100)), std::vector<int>({0, 0}));
}

}  // namespace
}  // namespace riffle::test
