// A whole proof of each strategy for 256 workers in 16 racks, its options with the longest periods
// among them. Bar: 1 s each.
#include <benchmark/benchmark.h>

#include "riffle/verify.h"
#include "strategies/example.h"

namespace riffle {
namespace {

void prove(benchmark::State& state, const std::string& spec) {
  const NamedStrategy strategy = StrategyTable::builtin().make(spec);
  const World world(example_racks(256));
  const Trace trace = example_trace();
  for (auto _ : state) {
    const Verification result = verify(strategy, world, trace);
    if (!result.ok()) state.SkipWithError("refuted");
    state.counters["period"] = result.period.value_or(0);
    state.counters["rate"] = result.mixing_rate.value_or(1);
  }
}

void register_all() {
  std::vector<std::string> specs;
  const StrategyTable table = StrategyTable::builtin();
  for (const StrategyInfo& info : table.all()) specs.push_back(info.name);
  for (const char* more :
       {"sesgd:group=2", "sesgd:schedule=random", "sesgd:schedule=random,every=8",
        "sesgd:order=combine-then-adapt,mix_state=true", "sesgd:bucket=layer",
        "ds-sync:pattern=bottleneck", "ds-sync:pattern=bottleneck,delay=0",
        "ds-sync:pattern=bottleneck,delay=20", "dasgd:merge=mix", "dear:bucket=optimal"})
    specs.emplace_back(more);
  for (const std::string& spec : specs)
    benchmark::RegisterBenchmark(spec.c_str(), [spec](benchmark::State& s) {
      prove(s, spec);
    })->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace riffle

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  riffle::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
