// Which algorithm runs.
#include "collective/choice.h"

#include <gtest/gtest.h>

#include "riffle/make_engine.h"

namespace riffle::collective {
namespace {

// Across hosts the agreed cluster decides, unless the program does; the far and slow make other
// choices than the near and fast. Inside a host the members' memory is better than any message.
TEST(Choice, IsTheClusterSCheapestAcrossHosts) {
  LoopbackWorld world({"a", "a", "b", "c", "d", "e", "f", "g", "h", "i"});
  const Engine& engine = world.engine(0);
  const auto chosen = [&](const char* cluster, Exchange exchange, Bytes size) {
    return algorithm_for(engine, CostModel(parse_cluster(cluster)), exchange, size);
  };
  const Exchange all{.group = Membership::all(10).ranks};
  const char* far = "flat:10,latency=50ms,bandwidth=10Gbps";
  const char* near = "flat:10,latency=1us,bandwidth=1Gbps";
  EXPECT_EQ(chosen(far, all, kibibytes(4)),
            CostModel(parse_cluster(far)).algorithm(all, kibibytes(4)));
  EXPECT_NE(chosen(far, all, kibibytes(1)), Algorithm::automatic);
  EXPECT_NE(chosen(near, all, mebibytes(64)), chosen(far, all, kibibytes(1)));
  Exchange told = all;
  told.algorithm = Algorithm::ring;
  EXPECT_EQ(chosen(far, told, kibibytes(4)), Algorithm::ring);
  EXPECT_EQ(chosen(far, {.group = {0, 1}}, kibibytes(4)), Algorithm::automatic);
}

}  // namespace
}  // namespace riffle::collective
