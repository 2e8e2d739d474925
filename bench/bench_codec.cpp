// f32 bytes per second that are encoded, with what is lost, and decoded: one core.
//   bench_codec --benchmark_filter=avx2
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "codec/codec.h"
#include "riffle/random.h"

namespace riffle {
namespace {

std::vector<float> some_values(std::size_t count) {
  Random random(1);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

void encode(benchmark::State& state, std::string_view variant, Wire wire) {
  const auto count = static_cast<std::size_t>(state.range(0)) / sizeof(float);
  const auto values = some_values(count);
  auto work = values;
  std::vector<float> lost(count);
  std::vector<std::byte> bytes(codec::encoded_bytes(wire, count));
  for (auto _ : state) {
    codec::encode_by(variant, wire, work.data(), count, bytes.data(), {lost.data(), 1});
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void decode(benchmark::State& state, std::string_view variant, Wire wire) {
  const auto count = static_cast<std::size_t>(state.range(0)) / sizeof(float);
  auto values = some_values(count);
  std::vector<std::byte> bytes(codec::encoded_bytes(wire, count));
  codec::encode_by(variant, wire, values.data(), count, bytes.data());
  for (auto _ : state) {
    codec::decode_by(variant, wire, bytes.data(), count, values.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

const bool registered = [] {
  for (const std::string_view variant : codec::variants())
    for (const Wire wire : {Wire::bf16, Wire::f16, Wire::int8})
      for (const auto& [name, run] : {std::pair{"encode", &encode}, std::pair{"decode", &decode}})
        benchmark::RegisterBenchmark(fmt::format("{}/{}/{}", variant, name_of(wire), name).c_str(),
                                     run, variant, wire)
            ->Arg(256 << 10)
            ->Arg(64 << 20);
  return true;
}();

}  // namespace
}  // namespace riffle
