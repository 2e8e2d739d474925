// The optimal merge: 161 layers (ResNet-50's tensors) and 10 000, on a fit and on one switch where
// several algorithms compete. Bars: 1 ms and 1 s.
#include <benchmark/benchmark.h>

#include <cmath>

#include "riffle/random.h"
#include "strategies/merge.h"

namespace riffle {
namespace {

std::vector<ReadyLayer> layers(int count) {
  Random random(1);
  std::vector<ReadyLayer> list;
  Seconds ready{};
  for (int i = 0; i < count; ++i) {
    ready += Seconds(std::exp(random.uniform(-9, -6)));
    list.push_back({ready, Bytes{static_cast<std::int64_t>(std::exp(random.uniform(6, 16)))}});
  }
  return list;
}

void merge(benchmark::State& state, const Curve& curve) {
  const auto list = layers(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(merge_optimal(list, curve));
}

void merge_fit(benchmark::State& state) {
  merge(state, Curve(LinearCost{milliseconds(0.9), {7.4e-10}}));
}

void merge_flat(benchmark::State& state) {
  const World world(parse_cluster("flat:16,latency=50us,bandwidth=10Gbps,gamma=0.1ns"));
  const CostModel cost(world.cluster);
  merge(state, cost.curve(world.ranks()));
}

BENCHMARK(merge_fit)->Arg(161)->Arg(10'000)->Unit(benchmark::kMillisecond);
BENCHMARK(merge_flat)->Arg(161)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace riffle
