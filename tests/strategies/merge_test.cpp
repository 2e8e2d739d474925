#include "strategies/merge.h"

#include <gtest/gtest.h>

#include <cmath>

#include "riffle/random.h"
#include "riffle/strategy.h"

namespace riffle {
namespace {

// The counter-example of docs/mg-wfbp.md: four equal layers.
std::vector<ReadyLayer> four_layers() {
  std::vector<ReadyLayer> layers;
  for (int j = 1; j <= 4; ++j) layers.push_back({milliseconds(j), Bytes{4'000'000}});
  return layers;
}
const LinearCost kFourLayerCost{milliseconds(1.2), {1e-3 / 4e6}};

TEST(Merge, ThePublishedRuleIsNotOptimal) {
  const Curve curve(kFourLayerCost);
  const auto layers = four_layers();
  EXPECT_EQ(merge_paper(layers, kFourLayerCost), std::vector<int>{4});
  EXPECT_NEAR(merged_end(layers, merge_paper(layers, kFourLayerCost), curve).count(), 9.2e-3,
              1e-12);
  EXPECT_NEAR(merged_end(layers, merge_optimal(layers, curve), curve).count(), 8.2e-3, 1e-12);
  EXPECT_NEAR(merged_end(layers, {1, 3}, curve).count(), 8.2e-3, 1e-12);
}

struct Instance {
  Trace trace;
  std::vector<ReadyLayer> layers;
};

// Layers whose sizes and times span orders of magnitude, as in real models.
Instance random_instance(Random& random, int layers) {
  Instance instance;
  instance.trace.model = "random";
  for (int i = 0; i < layers; ++i)
    instance.trace.layers.push_back({"l" + std::to_string(i),
                                     1 + static_cast<std::int64_t>(std::exp(random.uniform(2, 15))),
                                     Seconds(1e-4), Seconds(std::exp(random.uniform(-9, -4)))});
  instance.layers = ready_layers(instance.trace, Wire::f32);
  return instance;
}

LinearCost random_line(Random& random) {
  return {Seconds(std::exp(random.uniform(-12, -5))), {std::exp(random.uniform(-23, -18))}};
}

// A fit, one switch with several algorithms to choose from, or a measured curve with a jump.
Curve random_curve(Random& random) {
  switch (random.below(3)) {
    case 0:
      return Curve(random_line(random));
    case 1: {
      Cluster cluster = parse_cluster("flat:16,latency=50us,bandwidth=10Gbps,gamma=0.1ns");
      for (WorkerSpec& worker : cluster.workers)
        worker.link = {Seconds(std::exp(random.uniform(-12, -6))),
                       {std::exp(random.uniform(17, 22))}};
      return CostModel(cluster).curve(World(cluster).ranks());
    }
    default: {
      const LinearCost small = random_line(random);
      const Bytes jump{1 + static_cast<std::int64_t>(std::exp(random.uniform(5, 14)))};
      const LinearCost large{small.a * random.uniform(0.2, 3), {small.b.value * 0.7}};
      return Curve({{Bytes{0}, small}, {jump, large}});
    }
  }
}

Seconds brute_force(const std::vector<ReadyLayer>& layers, const Curve& curve) {
  const auto count = static_cast<int>(layers.size());
  Seconds best(1e9);
  for (int cuts = 0; cuts < 1 << (count - 1); ++cuts) {
    std::vector<int> layers_each{1};
    for (int i = 0; i + 1 < count; ++i) {
      if ((cuts >> i) & 1)
        layers_each.push_back(1);
      else
        ++layers_each.back();
    }
    best = std::min(best, merged_end(layers, layers_each, curve));
  }
  return best;
}

TEST(Merge, OptimalEqualsBruteForce) {
  Random random(7);
  for (int run = 0; run < 200; ++run) {
    const Instance instance = random_instance(random, 1 + static_cast<int>(random.below(12)));
    const Curve curve = random_curve(random);
    const Seconds found = merged_end(instance.layers, merge_optimal(instance.layers, curve), curve);
    const Seconds best = brute_force(instance.layers, curve);
    EXPECT_NEAR(found.count(), best.count(), 1e-12 * best.count()) << "run " << run;
  }
}

std::vector<int> sizes(const BucketPlan& plan) {
  std::vector<int> layers_each;
  for (const Bucket& bucket : plan) layers_each.push_back(bucket.last - bucket.first + 1);
  return layers_each;
}

TEST(Merge, OptimalIsNeverWorseOn1000Traces) {
  Random random(11);
  const StrategyTable table = StrategyTable::builtin();
  const World world(parse_cluster("flat:4,latency=1us,bandwidth=1Gbps"));
  const CostModel cost(world.cluster);
  for (int run = 0; run < 1000; ++run) {
    const Instance instance = random_instance(random, 2 + static_cast<int>(random.below(150)));
    const Curve curve = random_curve(random);
    const auto end = [&](const std::vector<int>& layers_each) {
      return merged_end(instance.layers, layers_each, curve).count();
    };
    const double optimal = end(merge_optimal(instance.layers, curve)) * (1 - 1e-12);
    for (const char* name : {"wfbp", "single", "ddp", "ddp:bucket=1MiB,first=100KiB"})
      EXPECT_LE(optimal, end(sizes(table.make(name)->buckets(instance.trace, cost, world))))
          << name << ", run " << run;
    EXPECT_LE(optimal, end(merge_paper(instance.layers, curve.pieces().back().cost)));
  }
}

}  // namespace
}  // namespace riffle
