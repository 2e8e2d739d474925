// The network between hosts is measured, and what was found chooses the algorithm on all ranks
// alike.
#include "collective/choice.h"
#include "far_workers.h"
#include "measure/network.h"
#include "riffle/cost.h"

namespace riffle::test {
namespace {

TEST(Measure, FindsTheLatencyBetweenHostsAndTellsAll) {
  NEEDS_HOSTS();
  constexpr auto one_way = std::chrono::milliseconds(10);
  const FarWorld world(3, 2, one_way);
  world.run([&](Engine& engine) {
    Collectives collectives(engine);
    const Group all = Membership::all(world.size()).ranks;
    const collective::Control control{collectives, all, Seconds(60)};
    const Cluster cluster =
        measure::measure_network(measure::Place(engine, control), measure::quick_look({}))
            .fit.cluster;
    EXPECT_EQ(cluster.size(), world.size());
    EXPECT_LT(cluster.latency(0, 1), milliseconds(3));
    // The lab takes what moving a packet usually costs off every latency, so the shortest of many
    // trips may be a little under it.
    for (const Rank far : {2, 3, 4, 5}) {
      EXPECT_GT(cluster.latency(0, far), 0.98 * Seconds(one_way)) << print(cluster);
      EXPECT_LT(cluster.latency(0, far), 1.5 * Seconds(one_way)) << print(cluster);
    }
    // Who chose differently would get a mismatch here.
    const CostModel costs(cluster);
    for (const std::size_t count : {10, 10'000, 1'000'000}) {
      const Algorithm algorithm = collective::algorithm_for(
          engine, costs, {.group = all}, Bytes{static_cast<std::int64_t>(count * sizeof(float))});
      EXPECT_NE(algorithm, Algorithm::automatic);
      std::vector<float> values(count, static_cast<float>(engine.rank()));
      collectives.all_reduce(all, tensor_view(values), {.algorithm = algorithm});
      EXPECT_EQ(values.back(), 2.5F);
    }
  });
}

}  // namespace
}  // namespace riffle::test
