// Members that make different calls: everybody gets an error that says what the two calls were.
#include <gtest/gtest.h>

#include <functional>

#include "collective/point_to_point.h"
#include "riffle/error.h"
#include "support/ranks.h"
#include "support/values.h"

namespace riffle::collective {
namespace {

struct Difference {
  std::string name;
  std::function<void(Call&)> make;  // what rank 1 does otherwise
  std::vector<std::string> words;   // that the error holds besides the two calls' names
};

std::vector<Difference> differences() {
  return {
      {"count", [](Call& call) { call.data.count = 999; }, {"1000 f32", "999 f32"}},
      {"small_count", [](Call& call) { call.data.count = 0; }, {"1000 f32", "0 f32"}},
      {"dtype", [](Call& call) { call.data.dtype = DType::f16; }, {"1000 f32", "1000 f16"}},
      {"same_bytes",
       [](Call& call) { call.data = {call.data.data, 2000, DType::bf16}; },
       {"1000 f32", "2000 bf16"}},
      {"operation",
       [](Call& call) { call.operation = Operation::reduce_scatter; },
       {"all_reduce", "reduce_scatter"}},
      {"barrier", [](Call& call) { call.operation = Operation::barrier; }, {"barrier"}},
      {"reduction", [](Call& call) { call.reduction = Reduction::sum; }, {"(sum", "(mean"}},
      {"weights", [](Call& call) { call.weights = {1, 2, 3, 4}; }, {"with weights"}},
      {"order", [](Call& call) { call.bucket = 8; }, {"bucket 7", "bucket 8"}},
      {"step", [](Call& call) { call.step = 42; }, {"step 41", "step 42"}},
  };
}

class Mismatch : public testing::TestWithParam<Algorithm> {};

TEST_P(Mismatch, IsNamedByAll) {
  for (const Difference& difference : differences()) {
    SCOPED_TRACE(difference.name);
    LoopbackWorld world({"a", "a", "b", "b"});
    test::run_ranks(world, [&](Rank rank) {
      PointToPoint p2p(world.engine(rank), {.piece = 512, .window = 2});
      test::Values values(2000, DType::f32);
      Call call;
      call.group = {0, 1, 2, 3};
      call.data = values.view();
      call.data.count = 1000;
      call.algorithm = GetParam();
      call.bucket = 7;
      call.step = 41;
      if (rank == 1) difference.make(call);
      const auto began = Clock::now();
      try {
        p2p.run(call, after(Seconds(30)));
        ADD_FAILURE() << "rank " << rank << " noticed nothing";
      } catch (const CommError& error) {
        const std::string text = error.what();
        EXPECT_EQ(error.failure(), CommFailure::mismatch) << text;
        EXPECT_EQ(error.operation(), name_of(call.operation)) << text;
        for (const std::string& word : difference.words)
          EXPECT_NE(text.find(word), std::string::npos) << word << " is not in: " << text;
      }
      EXPECT_LT(Seconds(Clock::now() - began), Seconds(10)) << "at rank " << rank;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(All, Mismatch,
                         testing::Values(Algorithm::ring, Algorithm::halving_doubling,
                                         Algorithm::recursive_doubling, Algorithm::direct,
                                         Algorithm::two_level),
                         [](const auto& param) {
                           std::string name{name_of(param.param)};
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Rank 2 waits for rank 1 too, which owes it nothing in its own call; rank 0 tells it.
TEST(MismatchOfGroups, IsNamedByAll) {
  LoopbackWorld world(3);
  test::run_ranks(world, [&](Rank rank) {
    PointToPoint p2p(world.engine(rank));
    test::Values values(10, DType::f32);
    Call call;
    call.group = rank == 1 ? Group{0, 1} : Group{0, 1, 2};
    call.algorithm = Algorithm::direct;
    call.data = values.view();
    try {
      p2p.run(call, after(Seconds(2)));
      ADD_FAILURE() << "rank " << rank << " noticed nothing";
    } catch (const CommError& error) {
      EXPECT_EQ(error.failure(), CommFailure::mismatch) << error.what();
      EXPECT_EQ(error.rank(), rank == 1 ? 0 : 1) << error.what();
    }
  });
}

TEST(LateMember, TimesOutByNameAndTellsTheOthers) {
  LoopbackWorld world(3);
  test::run_ranks(world, [&](Rank rank) {
    if (rank == 2) return;  // alive, but never calls
    PointToPoint p2p(world.engine(rank));
    test::Values values(10, DType::f32);
    Call call;
    call.group = {0, 1, 2};
    call.algorithm = Algorithm::ring;
    call.data = values.view();
    try {
      p2p.run(call, after(Seconds(rank == 0 ? 0.3 : 20)));
      ADD_FAILURE() << "rank " << rank << " noticed nothing";
    } catch (const CommError& error) {
      EXPECT_EQ(error.failure(), CommFailure::timed_out) << error.what();
      EXPECT_EQ(error.rank(), 2) << error.what();
    }
  });
}

TEST(BadCalls, AreUsageErrors) {
  LoopbackWorld world(2);
  PointToPoint p2p(world.engine(0));
  test::Values values(10, DType::f32);
  const auto expect_usage_error = [&](const std::function<void(Call&)>& change) {
    Call call;
    call.group = {0, 1};
    call.data = values.view();
    change(call);
    EXPECT_THROW((void)p2p.start(call, after(Seconds(1))), UsageError);
  };
  expect_usage_error([](Call& call) { call.group = {1}; });
  expect_usage_error([](Call& call) { call.lane = 16; });
  expect_usage_error([](Call& call) { call.weights = {1}; });
  expect_usage_error([](Call& call) { call.weights = {0, 0}; });
  expect_usage_error([](Call& call) { call.weights = {-1, 2}; });
  expect_usage_error([](Call& call) { call.root = 2; });
  expect_usage_error([](Call& call) { call.algorithm = Algorithm::tree; });
  expect_usage_error([](Call& call) { call.data.data += 1; });
}

}  // namespace
}  // namespace riffle::collective
