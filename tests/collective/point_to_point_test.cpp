// Every algorithm and collective over point-to-point, for any number of members, against a
// reference in float64; bit-identical on all members and from run to run.
#include "collective/point_to_point.h"

#include <gtest/gtest.h>

#include "support/calls.h"
#include "support/ranks.h"

namespace riffle::collective {
namespace {

using test::hosts_of_three;
using test::MadeCall;
using test::run_ranks;
using test::Values;

constexpr Operation operations[] = {Operation::all_reduce, Operation::reduce_scatter,
                                    Operation::all_gather, Operation::broadcast,
                                    Operation::shift,      Operation::barrier};
constexpr DType dtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

std::vector<MadeCall> calls_of(Algorithm algorithm, int n) {
  std::vector<MadeCall> calls;
  std::uint64_t seed = 0;
  for (const Operation operation : operations)
    for (const DType dtype : dtypes)
      for (const std::size_t count : {0, 1, 50, 1001}) {
        MadeCall made;
        made.call.operation = operation;
        made.call.group = Membership::all(n).ranks;
        made.call.algorithm = algorithm;
        made.call.reduction = seed % 2 == 0 ? Reduction::mean : Reduction::sum;
        made.call.root = static_cast<int>(seed) % n;
        made.call.places = static_cast<int>(seed % 3) + 1;
        if (seed % 3 == 0)
          for (int m = 0; m < n; ++m) made.call.weights.push_back(0.5 + m % 4);
        made.count = count;
        made.dtype = dtype;
        made.seed = ++seed;
        calls.push_back(made);
      }
  return calls;
}

class Conformance : public testing::TestWithParam<std::tuple<Algorithm, int>> {};

// [call][rank]
using Results = std::vector<std::vector<std::vector<std::byte>>>;

Results run_all(const std::vector<MadeCall>& calls, int n, std::size_t piece) {
  Results results(calls.size(), std::vector<std::vector<std::byte>>(static_cast<std::size_t>(n)));
  LoopbackWorld world(hosts_of_three(n));
  run_ranks(world, [&](Rank rank) {
    PointToPoint p2p(world.engine(rank), {.piece = piece, .window = 2});
    for (std::size_t c = 0; c < calls.size(); ++c) {
      Values values = input_of(calls[c], rank);
      Call call = calls[c].call;
      call.data = values.view();
      p2p.run(call, after(Seconds(60)));
      EXPECT_EQ(check(calls[c], rank, values), "") << describe(calls[c]) << " at " << rank;
      results[c][rank] = values.bytes();
    }
  });
  return results;
}

TEST_P(Conformance, AgainstTheReference) {
  const auto [algorithm, n] = GetParam();
  const auto calls = calls_of(algorithm, n);
  for (const std::size_t piece : {256 << 10, 192}) {  // one segment; many
    const Results results = run_all(calls, n, piece);
    for (std::size_t c = 0; c < calls.size(); ++c) {
      const Operation operation = calls[c].call.operation;
      if (operation == Operation::reduce_scatter || operation == Operation::shift ||
          operation == Operation::barrier)
        continue;
      for (int m = 1; m < n; ++m)
        EXPECT_EQ(results[c][m], results[c][0]) << describe(calls[c]) << " differs at " << m;
    }
  }
}

class SameBits : public Conformance {};

TEST_P(SameBits, InEveryRun) {
  const auto [algorithm, n] = GetParam();
  std::vector<MadeCall> calls = calls_of(algorithm, n);
  std::erase_if(calls, [](const MadeCall& made) {
    return made.call.operation == Operation::reduce_scatter || made.count < 1001;
  });
  EXPECT_EQ(run_all(calls, n, 192), run_all(calls, n, 192));
}

const auto algorithms =
    testing::Values(Algorithm::automatic, Algorithm::ring, Algorithm::halving_doubling,
                    Algorithm::recursive_doubling, Algorithm::direct, Algorithm::two_level);

std::string name_of_case(const testing::TestParamInfo<std::tuple<Algorithm, int>>& param) {
  std::string name{name_of(std::get<0>(param.param))};
  std::replace(name.begin(), name.end(), '-', '_');
  return name + "_" + std::to_string(std::get<1>(param.param));
}

INSTANTIATE_TEST_SUITE_P(AnyN, Conformance,
                         testing::Combine(algorithms,
                                          testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(AnyN, SameBits, testing::Combine(algorithms, testing::Values(2, 3, 5, 8)),
                         name_of_case);

}  // namespace
}  // namespace riffle::collective
