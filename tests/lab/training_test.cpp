// Every strategy trains between hosts as it does on one: the same weights on every worker.
#include "network/far_workers.h"
#include "riffle/strategy.h"
#include "runtime/toy.h"
#include "support/ranks.h"

namespace riffle::test {
namespace {

constexpr int hosts = 4;
constexpr int steps = 12;
constexpr int most_specs = 32;
constexpr int most_elements = 256;
const char* const cluster_spec = "racks:2x2,inner=1ms/200Mbps,outer=2ms/100Mbps";

// All there are, and delays that do not depend on measured times.
std::vector<std::string> specs() {
  std::vector<std::string> all{"sesgd:order=combine-then-adapt",
                               "ds-sync:pattern=bottleneck,delay=1", "dasgd:tau=2,delay=2",
                               "ssp:staleness=0"};
  const StrategyTable table = StrategyTable::builtin();
  const World world(parse_cluster(cluster_spec));
  for (const StrategyInfo& info : table.all())
    if (!table.make(info.name)->traits(world).timed)
      all.push_back(info.name == "ds-sync" ? "ds-sync:delay=0" : info.name);
  return all;
}

Vector train(Engine& engine, Collectives& collectives, const std::string& spec) {
  ToyOptions options;
  options.cluster = parse_cluster(cluster_spec);
  options.collectives = &collectives;
  options.sense = false;
  Toy toy(engine, spec, options);
  toy.train(steps);
  return toy.weights();
}

struct Trained {
  double weights[most_specs][hosts][most_elements];
};

TEST(LabTraining, EveryStrategyGivesTheWeightsOfOneHost) {
  NEEDS_HOSTS();
  const auto all = specs();
  ASSERT_LE(all.size(), std::size_t{most_specs});
  ASSERT_LE(toy_elements(), std::size_t{most_elements});
  Shared<Trained> far;
  const FarWorld world(parse_cluster(cluster_spec), 1);
  world.run([&](Engine& engine) {
    EXPECT_EQ(engine.host_memory()->ranks().size(), 1);
    Collectives collectives(engine);
    for (std::size_t s = 0; s < all.size(); ++s)
      std::ranges::copy(train(engine, collectives, all[s]), far->weights[s][engine.rank()]);
  });
  LoopbackWorld near(hosts);
  run_ranks(near, [&](Rank rank) {
    Collectives collectives(near.engine(rank));
    for (std::size_t s = 0; s < all.size(); ++s) {
      const Vector expected = train(near.engine(rank), collectives, all[s]);
      for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(far->weights[s][rank][i], expected[i], 1e-10 * (1 + std::abs(expected[i])))
            << all[s] << " on rank " << rank;
    }
  });
}

}  // namespace
}  // namespace riffle::test
