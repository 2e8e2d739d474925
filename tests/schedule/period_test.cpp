// Programs of a period on one line of time.
#include "schedule/period.h"

#include <gtest/gtest.h>

#include "support/programs.h"

namespace riffle::schedule {
namespace {

Exchange mean_of(int bucket, Group group, Start start, Due due) {
  return {.bucket = bucket,
          .payload = Payload::weight,
          .group = std::move(group),
          .start = start,
          .due = due};
}

const BucketPlan kTwo = make_buckets(test::trace(2), {1, 1});

TEST(Schedule, ItsWindowIsAPeriodAndWhatThatLeavesInFlight) {
  Program early;
  early.add(mean_of(0, {0, 1}, Start::bucket_stepped, before_forward()));
  Program late;
  late.add(mean_of(0, {0, 1}, Start::bucket_ready, after_step(3)));
  EXPECT_EQ(Schedule({early, late, early}, true, {0, 1}, kTwo).window, 3 + 3 + 1);
  EXPECT_EQ(Schedule({early, early}, true, {0, 1}, kTwo).window, 2 + 1 + 1);
  // Random groups: what was drawn, once.
  EXPECT_EQ(Schedule({early, late, early}, false, {0, 1}, kTwo).window, 3);
}

TEST(Schedule, InstancesStandInIssueOrderOfAllSteps) {
  Program first;
  first.add(mean_of(0, {0, 1}, Start::bucket_ready, after_step(1)));
  first.add(mean_of(1, {0, 1}, Start::step_done, before_forward()));
  Program second;
  second.add(mean_of(0, {0, 1}, Start::bucket_stepped, before_forward()));
  const Schedule schedule({first, second}, true, {0, 1}, kTwo);
  const std::vector<Instance> all = instances(schedule);
  // Steps 0 to 3: two, one, two, one.
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(all[0].taken, moment(0, Point::gradient_ready));
  EXPECT_EQ(all[0].merged, moment(1, Point::stepped));
  EXPECT_EQ(all[1].taken, moment(0, Point::step_done));
  EXPECT_EQ(all[1].merged, moment(1, Point::before_forward));
  EXPECT_EQ(all[2].step, 1);
  EXPECT_EQ(all[3].step, 2);
  EXPECT_EQ(all[3].exchange, all[0].exchange);
  EXPECT_EQ(all[3].merged, moment(3, Point::stepped));
}

TEST(Schedule, StartsFromThoseOfItsOwnStepOnly) {
  Program program;
  program.add(mean_of(0, {0, 1}, Start::bucket_stepped, before_forward()));
  program.add(mean_of(0, {0, 2}, Start::step_done, before_forward()));
  const Schedule schedule({program}, true, {0, 1, 2}, kTwo);
  const std::vector<Instance> all = instances(schedule);
  EXPECT_TRUE(starts_from(all[1], all[0]));
  EXPECT_FALSE(starts_from(all[0], all[1]));
  EXPECT_FALSE(starts_from(all[3], all[0]));
}

TEST(WaitsOf, WhatIsStillInFlightAndSharesAMember) {
  Program program;
  program.add(mean_of(0, {0, 1}, Start::bucket_stepped, before_forward()));  // 0
  program.add(mean_of(0, {2, 3}, Start::bucket_stepped, before_forward()));  // 1
  program.add(mean_of(1, {0, 1}, Start::bucket_stepped, before_forward()));  // 2: another bucket
  program.add(mean_of(0, {0, 2}, Start::step_done, before_forward()));       // 3
  program.add(mean_of(0, {1}, Start::step_done, before_forward()));          // 4: a no-op
  program.add(mean_of(0, {3, 4}, Start::step_done, before_forward()));       // 5
  const std::vector<std::vector<int>> waits{{}, {}, {}, {0, 1}, {}, {1}};
  EXPECT_EQ(waits_of(program), waits);
  // Merged before the others start: the worker has waited.
  program.exchanges[0].due = program.exchanges[1].due = after_step();
  program.exchanges[0].start = program.exchanges[1].start = Start::bucket_ready;
  EXPECT_EQ(waits_of(program), std::vector<std::vector<int>>(6));
  // Due later than the others: side by side.
  program.exchanges[0].due = program.exchanges[1].due = after_step(2);
  EXPECT_EQ(waits_of(program), std::vector<std::vector<int>>(6));
}

TEST(DistinctBuckets, AreOneOfEachKind) {
  const BucketPlan buckets = bucket_per_layer(test::trace(3));
  Program program;
  for (int bucket = 0; bucket < 3; ++bucket)
    program.add(mean_of(bucket, {0, 1}, Start::bucket_stepped, before_forward()));
  EXPECT_EQ(distinct_buckets(Schedule({program}, true, {0, 1}, buckets)), (std::vector<int>{0}));
  program.exchanges[1].due = before_forward(2);
  EXPECT_EQ(distinct_buckets(Schedule({program}, true, {0, 1}, buckets)), (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace riffle::schedule
