// Times of steps over whole periods, in seconds of the true cluster.
#include "race/measured.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "temporary_folder.h"

namespace riffle::race {
namespace {

TEST(Window, IsWholePeriodsAfterTheFirst) {
  EXPECT_EQ(window_of(10, 1, false), (Window{1, 10}));
  EXPECT_EQ(window_of(10, 1, true), (Window{0, 10}));
  EXPECT_EQ(window_of(11, 4, false), (Window{4, 8}));
  EXPECT_EQ(window_of(11, 4, true), (Window{0, 8}));
  EXPECT_EQ(window_of(7, 4, false), (Window{0, 4}));  // only one period
  EXPECT_EQ(window_of(3, 4, false), (Window{0, 3}));  // not even one
  EXPECT_EQ(window_of(5, 0, false), (Window{1, 5}));  // programs that never repeat
}

// Steps of 1, 3, 1, 3 ... seconds on rank 0, half a second more on rank 1.
Reports some(const TemporaryFolder& folder, int steps, bool exposed) {
  for (int rank = 0; rank < 2; ++rank) {
    std::string lines;
    double seconds = 0;
    for (int step = 1; step <= steps; ++step) {
      seconds += (step % 2 == 1 ? 1 : 3) + 0.5 * rank;
      lines += fmt::format(R"({{"step": {}, "seconds": {}, "loss": {}{}}})", step, seconds,
                           10.0 / step, exposed ? R"(, "exposed": 0.5)" : "") +
               "\n";
      if (rank == 0 && step % 2 == 0)
        lines += fmt::format(R"({{"evaluated": {}, "seconds": {}, "accuracy": {}}})", step, seconds,
                             0.1 * step) +
                 "\n";
    }
    static_cast<void>(folder.file(fmt::format("rank{}.jsonl", rank), lines));
  }
  Reports reports(folder.path(), 2);
  reports.read();
  return reports;
}

TEST(Measure, MeansAreOverRanksAndPeriods) {
  const TemporaryFolder folder;
  Result result;
  measure(some(folder, 9, true), {.dilate = 2, .period = 2, .target = 0.55}, result);
  EXPECT_EQ(result.steps, 9);
  EXPECT_DOUBLE_EQ(*result.seconds_per_step, (2.0 + 2.5) / 2 / 2);
  EXPECT_DOUBLE_EQ(*result.exposed, 0.25);
  EXPECT_DOUBLE_EQ(*result.compute, 1.125 - 0.25);
  EXPECT_DOUBLE_EQ(*result.accuracy, 0.8);
  EXPECT_DOUBLE_EQ(*result.seconds_to_target, 12.0 / 2);  // 0.6 after six steps
  EXPECT_EQ(result.evaluations.size(), 4U);
  ASSERT_EQ(result.curve.step.size(), 9U);
  EXPECT_DOUBLE_EQ(result.curve.loss[4], 2.0);
  EXPECT_DOUBLE_EQ(result.curve.seconds[1], 2.0);
}

TEST(Measure, WhatALibraryDoesNotTellIsTheStepWithoutItsCompute) {
  const TemporaryFolder folder;
  Result result;
  measure(some(folder, 9, false), {.period = 2, .compute = 2.0}, result);
  EXPECT_DOUBLE_EQ(*result.exposed, 0.25);
  EXPECT_EQ(result.seconds_to_target, std::nullopt);
}

TEST(Measure, NothingReportedIsNothingMeasured) {
  const TemporaryFolder folder;
  Result result;
  measure(Reports(folder.path(), 2), {}, result);
  EXPECT_EQ(result, Result{});
}

TEST(Measure, LongCurvesAreThinned) {
  const TemporaryFolder folder;
  Result result;
  measure(some(folder, 1000, false), {}, result);
  EXPECT_EQ(result.curve.step.size(), 333U);
  EXPECT_EQ(result.curve.step.back(), 999);
}

}  // namespace
}  // namespace riffle::race
