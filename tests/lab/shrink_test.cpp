// Under --shrink layers are merged into the same buckets as without: every size threshold shrinks
// along.
#include <gtest/gtest.h>

#include "lab/emulated_compute.h"
#include "model/slowed_down.h"
#include "riffle/error.h"
#include "riffle/load.h"
#include "strategies/true_sizes.h"

namespace riffle::lab {
namespace {

std::vector<int> layers_each(const BucketPlan& buckets) {
  std::vector<int> counts;
  for (const Bucket& bucket : buckets) counts.push_back(bucket.last - bucket.first + 1);
  return counts;
}

std::vector<int> plan(const NamedStrategy& strategy, const Trace& trace, const Cluster& cluster) {
  return layers_each(strategy->buckets(trace, CostModel(cluster), World(cluster)));
}

std::vector<std::int64_t> sizes(const Trace& trace) {
  std::vector<std::int64_t> elements;
  for (const Layer& layer : trace.layers) elements.push_back(layer.elements);
  return elements;
}

// As riffle-worker does it: times and network dilated, sizes shrunk.
std::vector<int> plan_in_lab(const NamedStrategy& strategy, const Trace& whole,
                             const Cluster& cluster, double dilate, double shrink) {
  Trace trace = shrunk(whole, shrink);
  for (Layer& layer : trace.layers) {
    layer.forward *= dilate;
    layer.backward *= dilate;
  }
  const Cluster slow = model::slowed_down(cluster, dilate, shrink);
  const std::vector<int> layers =
      plan(with_true_sizes(strategy, sizes(whole), shrink), trace, slow);
  const StrategyTable table = with_true_sizes(StrategyTable::builtin(), sizes(whole), shrink);
  EXPECT_EQ(plan(table.make(strategy.spec), trace, slow), layers) << strategy.spec;
  return layers;
}

TEST(Shrink, EveryStrategyHasTheBucketsOfTheTrueModel) {
  const StrategyTable table = StrategyTable::builtin();
  const Cluster cluster = parse_cluster("racks:2x4,inner=1ms/1Gbps,outer=2ms/500Mbps,gamma=0.1ns");
  std::vector<std::string> specs{"sesgd:bucket=4MiB", "dear:bucket=2MiB", "ddp:first=3MB"};
  for (const StrategyInfo& info : table.all())
    for (const std::string& spec : info.specs()) specs.push_back(spec);
  for (const char* model : {"resnet50", "vgg16"}) {
    const Trace whole = load_trace(model);
    for (const std::string& spec : specs) {
      const NamedStrategy strategy = table.make(spec);
      const auto expected = plan(strategy, whole, cluster);
      for (const double shrink : {1.0, 7.0, 64.0, 5000.0}) {
        if (strategy.name == "powersgd" && shrink != 1) {  // factors do not shrink with matrices
          EXPECT_THROW((void)plan_in_lab(strategy, whole, cluster, 8, shrink), UsageError);
          continue;
        }
        EXPECT_EQ(plan_in_lab(strategy, whole, cluster, 8, shrink), expected)
            << spec << ", " << model << ", shrunk " << shrink << " times";
      }
    }
  }
}

// What the test above guards against.
TEST(Shrink, ThresholdsThatStayWouldGiveOtherBuckets) {
  const Trace whole = load_trace("resnet50");
  const Cluster cluster = parse_cluster("flat:4,latency=1ms,bandwidth=1Gbps");
  const NamedStrategy ddp = StrategyTable::builtin().make("ddp");
  EXPECT_NE(plan(ddp, shrunk(whole, 64), model::slowed_down(cluster, 1, 64)),
            plan(ddp, whole, cluster));
}

// Algorithms are chosen as on the true cluster, without being told of it.
TEST(Shrink, AlgorithmsAreThoseOfTheTrueSizes) {
  const Cluster cluster = parse_cluster("flat:16,latency=1ms,bandwidth=1Gbps,gamma=1ns");
  const CostModel whole(cluster);
  const CostModel emulated(model::slowed_down(cluster, 4, 64));
  const Exchange exchange{.group = Membership::all(16).ranks};
  for (const std::int64_t bytes : {64 << 6, 64 << 10, 64 << 14, 64 << 18}) {
    EXPECT_EQ(emulated.algorithm(exchange, Bytes{bytes / 64}),
              whole.algorithm(exchange, Bytes{bytes}));
    EXPECT_NEAR(emulated.time(exchange, Bytes{bytes / 64}).count(),
                4 * whole.time(exchange, Bytes{bytes}).count(), 1e-9);
  }
}

}  // namespace
}  // namespace riffle::lab
