// What a collective must give, computed in float64 from the inputs of all members.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "riffle/collective.h"
#include "riffle/random.h"

namespace riffle::test {

std::vector<Rank> everyone(int size);

// Memory of the engine, or ordinary memory.
class Memory {
 public:
  Memory(Engine& engine, bool of_engine, std::size_t bytes);
  [[nodiscard]] std::byte* data() { return of_engine_ ? buffer_.data() : own_.data(); }
  template <typename T>
  [[nodiscard]] std::span<T> as() {
    return {reinterpret_cast<T*>(data()), bytes_ / sizeof(T)};
  }

 private:
  bool of_engine_;
  std::size_t bytes_;
  Buffer buffer_;
  std::vector<std::byte> own_;
};

struct Trial {
  enum What { all_reduce, reduce_scatter, all_gather, broadcast, shift, barrier };
  static constexpr std::array all{all_reduce, reduce_scatter, all_gather,
                                  broadcast,  shift,          barrier};

  What what = all_reduce;
  Group group;
  std::size_t count = 0;
  DType dtype = DType::f32;
  Reduction reduction = Reduction::mean;
  std::vector<double> weights = {};
  std::uint64_t seed = 0;
  int lane = 0;
  Algorithm algorithm = Algorithm::automatic;
  std::uint32_t epoch = 0;
  int places = 2;  // of a shift
};
std::string_view name_of(Trial::What what);

// A trial over a random group of a world of `size`, of at most `limit` elements; the same on every
// rank.
Trial random_trial(Random& random, int size, std::size_t limit);

// The input of one rank: numbers that differ by rank and place.
double input(std::uint64_t seed, Rank rank, std::size_t index);
void fill(std::span<float> values, std::uint64_t seed, Rank rank);

// Makes the call: a broadcast from the last member. What the options and the
// trial both have is taken from the options.
void call(Collectives& collectives, const Trial& trial, TensorView data,
          const CollectiveOptions& options);
// Makes the call on this rank and compares every element that the collective defines.
void check(Engine& engine, Collectives& collectives, bool engine_memory, const Trial& trial);

}  // namespace riffle::test
