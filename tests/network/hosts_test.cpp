// Worlds of several hosts: who shares memory with whom, and collectives over random groups.
#include <fstream>

#include "far_workers.h"

namespace riffle::test {
namespace {

TEST(Hosts, RanksOfOneHostShareMemoryOthersDoNot) {
  NEEDS_HOSTS();
  const FarWorld world(2, 2);
  world.run([](Engine& engine) {
    EXPECT_EQ(engine.name(), "tcp");
    EXPECT_EQ(engine.host_memory()->ranks(), engine.rank() < 2 ? Group({0, 1}) : Group({2, 3}));
    EXPECT_EQ(engine.host(0), engine.host(1));
    EXPECT_EQ(engine.host(2), engine.host(3));
    EXPECT_NE(engine.host(0), engine.host(2));
    EXPECT_NE(engine.host(2).find("lab1"), std::string::npos) << engine.host(2);
    EXPECT_THROW((void)engine.host_memory()->view(3 - engine.rank(), 0, 1), CommError);
    Collectives(engine).barrier(Group({0, 1, 2, 3}));
  });
}

// Bytes that an interface of this namespace has sent.
long long bytes_sent() {
  long long bytes = 0;
  std::ifstream("/sys/class/net/eth0/statistics/tx_bytes") >> bytes;
  return bytes;
}

TEST(Hosts, BytesBetweenHostsCrossTheirInterface) {
  NEEDS_HOSTS();
  const FarWorld world(2, 1);
  world.run([](Engine& engine) {
    Collectives collectives(engine);
    const Group both({0, 1});
    std::vector<float> values(1 << 20);
    const long long before = bytes_sent();
    collectives.all_reduce(both, tensor_view(values));  // half of 4 MiB, twice
    collectives.barrier(both);
    EXPECT_GE(bytes_sent() - before, 4 << 20);
  });
}

TEST(Hosts, RandomCollectivesOfRandomGroups) {
  NEEDS_HOSTS();
  run_random_trials(FarWorld(4, 2), 300, Seconds(60));
}

// A path loses 2 % of its packets; what is lost is sent again, and nothing comes twice or out of
// order.
TEST(Hosts, RandomCollectivesOverALossyNetwork) {
  NEEDS_HOSTS();
  const FarWorld world(4, 1, milliseconds(2));
  world.disturb(0.01, milliseconds(1));
  run_random_trials(world, 60, Seconds(60));
  std::int64_t lost = 0;
  for (const lab::Counters& port : world.lab().network().counters()) lost += port.lost;
  EXPECT_GT(lost, 10);
}

}  // namespace
}  // namespace riffle::test
