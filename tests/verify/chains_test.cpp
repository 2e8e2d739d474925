// Exchanges of one step that start from each other's results, and buffers that travel beside
// weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "refusal.h"
#include "riffle/verify.h"
#include "schedule/schedule.h"
#include "support/programs.h"

namespace riffle::test {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;

Exchange gradient(int bucket, Group group, Start start) {
  return {.bucket = bucket, .group = std::move(group), .start = start, .due = before_step()};
}
Exchange weight(int bucket, Group group, Start start, Due due = before_forward()) {
  return {.bucket = bucket,
          .payload = Payload::weight,
          .group = std::move(group),
          .start = start,
          .due = due,
          .merge = replace()};
}
Verification check(const Program& program, BucketPlan buckets = one_bucket(trace(1))) {
  return verify({program}, true, flat(4), buckets);
}

TEST(Chains, RowsThenColumnsAreTheMeanOfAll) {
  // The columns may start while the rows are in flight: they start from the rows' results.
  Program program;
  for (const Group& row : {Group{0, 1}, Group{2, 3}})
    program.add(gradient(0, row, Start::bucket_ready));
  for (const Group& column : {Group{0, 2}, Group{1, 3}})
    program.add(gradient(0, column, Start::backward_done));
  const Verification result = check(program);
  EXPECT_TRUE(result.ok()) << print(result.problems.front());
  EXPECT_EQ(result.steps_to_consensus, 1);

  // Columns that meet the same ranks again leave two halves that differ.
  program.exchanges[2].group = {0, 1};
  program.exchanges[3].group = {2, 3};
  EXPECT_FALSE(check(program).ok());
}

TEST(Chains, LanesMakeNoDifference) {
  Program program;
  for (const Group& row : {Group{0, 1}, Group{2, 3}})
    program.add(weight(0, row, Start::bucket_stepped));
  for (const Group& column : {Group{0, 2}, Group{1, 3}})
    program.add(weight(0, column, Start::step_done));
  program.exchanges[2].lane = program.exchanges[3].lane = 1;
  const Verification result = check(program);
  EXPECT_TRUE(result.ok()) << print(result.problems.front());
  EXPECT_EQ(result.steps_to_consensus, 1);
  EXPECT_NO_THROW(static_cast<void>(schedule::needs_of({program})));
}

TEST(Chains, WhatNoWorkerCanRunIsRefusedByBoth) {
  // The columns would have to start from a mean that the rows have not merged yet.
  Program program;
  for (const Group& row : {Group{0, 1}, Group{2, 3}})
    program.add(weight(0, row, Start::bucket_stepped));
  for (const Group& column : {Group{0, 2}, Group{1, 3}})
    program.add(weight(0, column, Start::step_done));
  program.exchanges[0].merge = program.exchanges[1].merge = mix(0.5);
  const std::string why = "it starts from the result of the all_reduce of {0 1} while that is";
  EXPECT_THAT(check(program).problems, Contains(Field(&Problem::what, HasSubstr(why))));
  EXPECT_THAT(refusal([&] { (void)schedule::needs_of({program}); }), HasSubstr(why));
}

TEST(Chains, AnEarlierExchangeThatIsDueLaterIsNoPartOfIt) {
  Program program;
  for (const Group& row : {Group{0, 1}, Group{2, 3}})
    program.add(weight(0, row, Start::bucket_stepped, before_forward(2)));
  for (const Group& column : {Group{0, 2}, Group{1, 3}})
    program.add(weight(0, column, Start::step_done));
  EXPECT_THAT(check(program).problems,
              Contains(Field(&Problem::what, HasSubstr("discards the weight all_reduce of"))));
}

TEST(Chains, WaitingForAnotherLaneMayDeadlock) {
  // The second starts from the result of the first, which waits for the step's end; the gradient
  // behind it on its lane must be there before.
  Program program;
  program.add(weight(0, {0, 1}, Start::step_done));
  program.add(weight(0, {0, 1}, Start::bucket_stepped));
  program.add(gradient(1, {0, 1}, Start::bucket_ready));
  program.exchanges[1].lane = program.exchanges[2].lane = 1;
  const BucketPlan buckets = bucket_per_layer(trace(2));
  EXPECT_FALSE(check(program, buckets).deadlock_free);
  program.exchanges[2].lane = 2;
  EXPECT_TRUE(check(program, buckets).deadlock_free);
}

TEST(Buffers, TravelWithTheBucketsThatHaveSome) {
  BucketPlan buckets = bucket_per_layer(trace(2));
  buckets[1].buffers = Bytes{64};
  Program program;
  for (const int bucket : {0, 1}) program.add(weight(bucket, {0, 1, 2, 3}, Start::bucket_stepped));
  Exchange statistics = program.exchanges[1];
  statistics.payload = Payload::buffers;
  program.add(statistics);
  EXPECT_TRUE(check(program, buckets).ok());
  // Of a bucket that has some, everybody's are to travel.
  program.exchanges[2].group = {0, 1, 2};
  EXPECT_THAT(check(program, buckets).problems, Contains(Field(&Problem::ranks, Group{3})));
}

}  // namespace
}  // namespace riffle::test
