// Bytes read and written per second by the reductions, beside memcpy and the loop one would write.
//   bench_reduce --benchmark_filter=f32
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <string>

#include "collective/reduce.h"

namespace riffle {
namespace {

// Buffers on page boundaries, touched, filled with halves that sum without overflow.
class Vectors {
 public:
  Vectors(std::size_t count, std::size_t bytes) {
    for (std::size_t i = 0; i < count; ++i) {
      auto* data = static_cast<std::byte*>(std::aligned_alloc(4096, bytes));
      std::memset(data, 0x11, bytes);
      owned_.emplace_back(data);
      pointers_.push_back(data);
    }
  }
  [[nodiscard]] std::byte* operator[](std::size_t i) const { return owned_[i].get(); }
  [[nodiscard]] const std::vector<const std::byte*>& pointers() const { return pointers_; }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::vector<std::unique_ptr<std::byte, Free>> owned_;
  std::vector<const std::byte*> pointers_;
};

void count_bytes(benchmark::State& state, std::size_t vectors) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * vectors) * state.range(0));
}

void reduce(benchmark::State& state, std::string_view variant, DType dtype, std::size_t inputs,
            bool in_place) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const Vectors in(inputs, bytes);
  const Vectors out(1, bytes);
  std::byte* to = in_place ? in[0] : out[0];
  const auto elements = bytes / static_cast<std::size_t>(size_of(dtype).count);
  for (auto _ : state) {
    collective::reduce_into_by(variant, to, in.pointers(), {}, 1.0 / static_cast<double>(inputs),
                               elements, dtype);
    benchmark::ClobberMemory();
  }
  count_bytes(state, inputs + 1);
}

void copy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const Vectors vectors(2, bytes);
  for (auto _ : state) {
    std::memcpy(vectors[0], vectors[1], bytes);
    benchmark::ClobberMemory();
  }
  count_bytes(state, 2);
}

void plain_loop(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const Vectors vectors(2, bytes);
  auto* to = reinterpret_cast<float*>(vectors[0]);
  const auto* from = reinterpret_cast<const float*>(vectors[1]);
  for (auto _ : state) {
    for (std::size_t i = 0; i < bytes / sizeof(float); ++i) to[i] += from[i];
    benchmark::ClobberMemory();
  }
  count_bytes(state, 3);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->RangeMultiplier(16)->Range(4 << 10, 64 << 20);
}

const bool registered = [] {
  benchmark::RegisterBenchmark("memcpy", copy)->Apply(sizes);
  benchmark::RegisterBenchmark("plain_loop/f32/2", plain_loop)->Apply(sizes);
  for (const std::string_view variant : collective::reduce_variants())
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
      for (const std::size_t inputs : {2, 4})
        for (const bool in_place : {false, true})
          benchmark::RegisterBenchmark(fmt::format("{}/{}/{}{}", variant, name_of(dtype), inputs,
                                                   in_place ? "/in_place" : "")
                                           .c_str(),
                                       reduce, variant, dtype, inputs, in_place)
              ->Apply(sizes);
  return true;
}();

}  // namespace
}  // namespace riffle
