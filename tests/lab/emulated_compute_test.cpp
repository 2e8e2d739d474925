// What a device takes, by host and by what has happened.
#include "lab/emulated_compute.h"

#include <gtest/gtest.h>

namespace riffle::lab {
namespace {

TEST(EmulatedCompute, TheLastEventCountsWhereverItIsWritten) {
  LabEnvironment environment;
  environment.cluster = parse_cluster("flat:2,latency=1ms,bandwidth=1Gbps,slow=1*2");
  environment.start = clock_now() - 10'000'000'000;
  environment.events =
      parse_changes("at=5s,worker=1,slow=7 at=99s,worker=1,slow=9 at=2s,worker=1,slow=4", "test");
  EmulatedCompute compute({}, environment, 1);
  compute.begin_step(0);
  EXPECT_EQ(compute.factor(), 7);
  EmulatedCompute other({}, environment, 0);
  other.begin_step(0);
  EXPECT_EQ(other.factor(), 1);
}

// As the launcher places them: ranks 0 and 1 are on host 0.
TEST(EmulatedCompute, RanksOfAHostHaveItsSpeed) {
  std::vector<int> hosts;
  for (int rank = 0; rank < 6; ++rank) hosts.push_back(host_of(rank, 6, 3));
  EXPECT_EQ(hosts, (std::vector<int>{0, 0, 1, 1, 2, 2}));
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(host_of(rank, 3, 3), rank);
}

}  // namespace
}  // namespace riffle::lab
