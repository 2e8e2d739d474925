// Rank 0 measures, and what it has found chooses the algorithm on all ranks alike.
#include "far_workers.h"
#include "riffle/cost.h"
#include "riffle/error.h"
#include "support/ranks.h"

namespace riffle::test {
namespace {

TEST(Measure, FindsTheLatencyBetweenHostsAndTellsAll) {
  NEEDS_HOSTS();
  constexpr auto one_way = std::chrono::milliseconds(10);
  const FarWorld world(3, 2, one_way);
  world.run([&](Engine& engine) {
    Collectives collectives(engine);
    const Cluster cluster = measure_cluster(collectives, engine);
    EXPECT_EQ(cluster.size(), world.size());
    EXPECT_LT(cluster.latency(0, 1), milliseconds(3));
    for (const Rank far : {2, 3, 4, 5}) {
      EXPECT_GT(cluster.latency(0, far), Seconds(one_way)) << print(cluster);
      EXPECT_LT(cluster.latency(0, far), 1.5 * Seconds(one_way)) << print(cluster);
    }
    collectives.choose_by(cluster);
    const Group all = Membership::all(world.size()).ranks;
    const Exchange exchange{.group = all};
    for (const Bytes size : {Bytes{4096}, mebibytes(1), mebibytes(64)})
      EXPECT_EQ(collectives.algorithm_of(all, size), CostModel(cluster).algorithm(exchange, size));
    // Who chose differently would get a mismatch here.
    for (const std::size_t count : {10, 10'000, 1'000'000})
      check(engine, collectives, false, {.group = all, .count = count, .seed = count});
  });
}

TEST(Measure, AnotherClusterChoosesAnotherAlgorithm) {
  LoopbackWorld world(16);
  const Group all = Membership::all(16).ranks;
  run_ranks(world, [&](Rank rank) {
    Collectives collectives(world.engine(rank));
    EXPECT_EQ(collectives.algorithm_of(all, mebibytes(64)), Algorithm::halving_doubling);
    for (const char* spec :
         {"flat:16,latency=1ns,bandwidth=1Mbps", "flat:16,latency=1s,bandwidth=10GB/s"}) {
      const Cluster cluster = parse_cluster(spec);
      collectives.choose_by(cluster);
      for (const Bytes size : {Bytes{4}, Bytes{4096}, mebibytes(64)})
        EXPECT_EQ(collectives.algorithm_of(all, size),
                  CostModel(cluster).algorithm({.group = all}, size));
      std::vector<float> values(100, 1);
      collectives.all_reduce(all, elements(values),
                             {.algorithm = collectives.algorithm_of(all, Bytes{400})});
      EXPECT_EQ(values[99], 1);
    }
    EXPECT_EQ(collectives.algorithm_of(all, Bytes{4}), Algorithm::recursive_doubling);
    EXPECT_THROW(collectives.choose_by(parse_cluster("flat:2,latency=1us,bandwidth=1Gbps")),
                 UsageError);
  });
}

}  // namespace
}  // namespace riffle::test
