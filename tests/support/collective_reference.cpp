#include "support/collective_reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "codec/half.h"

namespace riffle::test {

std::vector<Rank> everyone(int size) {
  std::vector<Rank> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Memory::Memory(Engine& engine, bool of_engine, std::size_t bytes)
    : of_engine_(of_engine), bytes_(bytes) {
  if (of_engine)
    buffer_ = engine.allocate(bytes);
  else
    own_.resize(bytes);
}

double input(std::uint64_t seed, Rank rank, std::size_t index) {
  std::uint64_t mixed =
      (seed + static_cast<std::uint64_t>(rank) * 0x9e3779b9U + index) * 0xff51afd7ed558ccdULL;
  mixed ^= mixed >> 32;
  // A few bits only, so that every type holds it exactly.
  return static_cast<double>(mixed & 255) / 64 - 2;
}

void fill(std::span<float> values, std::uint64_t seed, Rank rank) {
  Random random(seed, static_cast<std::uint64_t>(rank));
  for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
}

namespace {

double load(const std::byte* at, DType dtype) {
  if (dtype == DType::f64) {
    double value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  if (dtype == DType::f32) {
    float value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return dtype == DType::f16 ? codec::widen_f16(bits) : codec::widen_bf16(bits);
}

void store(std::byte* at, DType dtype, double value) {
  const float single = static_cast<float>(value);
  const std::uint16_t half =
      dtype == DType::f16 ? codec::narrow_f16(single) : codec::narrow_bf16(single);
  if (dtype == DType::f64)
    std::memcpy(at, &value, sizeof value);
  else if (dtype == DType::f32)
    std::memcpy(at, &single, sizeof single);
  else
    std::memcpy(at, &half, sizeof half);
}

double relative_error(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 1e-14;
    case DType::f32:
      return 2e-6;
    case DType::f16:
      return 1.0 / 1024;
    default:  // bf16; these tests have no integers
      return 1.0 / 128;
  }
  return 0;
}

// The weighted sum or mean over some members.
double combined(const Trial& trial, const std::vector<int>& members, std::size_t index) {
  double sum = 0;
  double weights = 0;
  for (const int member : members) {
    const double weight =
        trial.weights.empty() ? 1 : trial.weights[static_cast<std::size_t>(member)];
    sum += weight * input(trial.seed, trial.group.ranks()[static_cast<std::size_t>(member)], index);
    weights += weight;
  }
  if (trial.reduction == Reduction::sum) return sum;
  return weights == 0
             ? input(trial.seed, trial.group.ranks()[static_cast<std::size_t>(members[0])], index)
             : sum / weights;
}

// What member `self` must find at `index`; nothing where the collective leaves it undefined.
std::optional<double> expected(const Trial& trial, int self, std::size_t index) {
  const int n = trial.group.size();
  const auto rank_of = [&](int member) {
    return trial.group.ranks()[static_cast<std::size_t>(member)];
  };
  const auto owner = [&] {
    int member = 0;
    while (true) {
      const Slice slice = slice_of(trial.count, trial.dtype, n, member);
      if (index < slice.begin + slice.count) return member;
      ++member;
    }
  };
  std::vector<int> members(static_cast<std::size_t>(n));
  std::iota(members.begin(), members.end(), 0);
  switch (trial.what) {
    case Trial::all_reduce:
      return combined(trial, members, index);
    case Trial::reduce_scatter:
      if (owner() != self) return std::nullopt;
      return combined(trial, members, index);
    case Trial::all_gather:
      return input(trial.seed, rank_of(owner()), index);
    case Trial::broadcast:
      return input(trial.seed, rank_of(n - 1), index);
    case Trial::shift:
      return combined(trial, {self, (self - trial.places % n + n) % n}, index);
    case Trial::barrier:
      return input(trial.seed, rank_of(self), index);
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(Trial::What what) {
  constexpr std::array<std::string_view, 6> names{"all_reduce", "reduce_scatter", "all_gather",
                                                  "broadcast",  "shift",          "barrier"};
  return names.at(what);
}

void call(Collectives& collectives, const Trial& trial, TensorView data,
          const CollectiveOptions& options) {
  switch (trial.what) {
    case Trial::all_reduce:
      return collectives.all_reduce(trial.group, data, options);
    case Trial::reduce_scatter:
      return collectives.reduce_scatter(trial.group, data, options);
    case Trial::all_gather:
      return collectives.all_gather(trial.group, data, options);
    case Trial::broadcast:
      return collectives.broadcast(trial.group, trial.group.ranks().back(), data, options);
    case Trial::shift:
      return collectives.shift(trial.group, trial.places, data, options);
    case Trial::barrier:
      return collectives.barrier(trial.group, options);
  }
}

Trial random_trial(Random& random, int size, std::size_t limit) {
  Trial trial;
  trial.what = Trial::all[random.below(Trial::all.size())];
  auto ranks = random.permutation(size);
  ranks.resize(2 + random.below(static_cast<std::uint64_t>(size) - 1));
  std::sort(ranks.begin(), ranks.end());
  trial.group = Group(std::move(ranks));
  trial.count = random.below(limit + 1);
  constexpr std::array types{DType::f32, DType::f64, DType::f16, DType::bf16};
  trial.dtype = types[random.below(4)];
  trial.reduction = random.below(2) == 0 ? Reduction::sum : Reduction::mean;
  if (random.below(4) == 0)
    for (int i = 0; i < trial.group.size(); ++i)
      trial.weights.push_back(static_cast<double>(1 + random.below(8)) / 4);
  trial.seed = random.next() >> 20;
  return trial;
}

void check(Engine& engine, Collectives& collectives, bool engine_memory, const Trial& trial) {
  const std::size_t size = static_cast<std::size_t>(size_of(trial.dtype).count);
  Memory memory(engine, engine_memory, trial.count * size);
  for (std::size_t i = 0; i < trial.count; ++i)
    store(memory.data() + i * size, trial.dtype, input(trial.seed, engine.rank(), i));
  call(collectives, trial, {memory.data(), trial.count, trial.dtype},
       {.lane = trial.lane,
        .reduction = trial.reduction,
        .weights = trial.weights,
        .algorithm = trial.algorithm,
        .timeout = Seconds(30),
        .epoch = trial.epoch});
  const int self = trial.group.index_of(engine.rank());
  for (std::size_t i = 0; i < trial.count; ++i) {
    const auto wanted = expected(trial, self, i);
    if (!wanted) continue;
    const double found = load(memory.data() + i * size, trial.dtype);
    const double scale = std::max(std::abs(*wanted), 2.0 * trial.group.size());
    if (std::abs(found - *wanted) > relative_error(trial.dtype) * scale) {
      ADD_FAILURE() << "operation " << trial.what << " of " << trial.count << " "
                    << name_of(trial.dtype) << " over " << print(trial.group) << ": rank "
                    << engine.rank() << " found " << found << " instead of " << *wanted << " at "
                    << i;
      return;
    }
  }
}

}  // namespace riffle::test
