// Programs that must be refuted, each by the check it breaks, naming step, bucket and ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "riffle/verify.h"
#include "support/programs.h"

namespace riffle::test {
namespace {

using Check = Problem::Check;
using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;

const BucketPlan kTwoBuckets = make_buckets(trace(2), {1, 1});

Exchange mean_of(int bucket, Group group) {
  return {.bucket = bucket,
          .payload = Payload::weight,
          .group = std::move(group),
          .start = Start::bucket_stepped,
          .due = before_forward(),
          .merge = replace()};
}
Exchange gradient(int bucket, Group group) {
  return {.bucket = bucket, .group = std::move(group), .due = before_step()};
}

// Both buckets averaged over the groups given.
Program step(const std::vector<Group>& groups) {
  Program program;
  for (int bucket = 0; bucket < 2; ++bucket)
    for (const Group& group : groups) program.add(mean_of(bucket, group));
  return program;
}

Verification check(const std::vector<Program>& programs, int workers = 4) {
  return verify(programs, true, flat(workers), kTwoBuckets);
}

auto found(Check kind, Step at, int bucket, Group ranks, const std::string& words) {
  return Contains(AllOf(Field(&Problem::check, kind), Field(&Problem::step, at),
                        Field(&Problem::bucket, bucket), Field(&Problem::ranks, ranks),
                        Field(&Problem::what, HasSubstr(words))));
}

TEST(Broken, TheSoundOneIsAccepted) {
  const Verification result = check({step({{0, 1}, {2, 3}}), step({{0, 2}, {1, 3}})});
  EXPECT_TRUE(result.ok()) << print(result.problems.front());
  EXPECT_EQ(result.steps_to_consensus, 2);
}

TEST(Broken, ARankIsMissing) {
  const Verification result = check({step({{0, 1}, {2, 3}}), step({{0, 2}, {1}})});
  EXPECT_FALSE(result.partition);
  EXPECT_THAT(result.problems, found(Check::partition, 1, 0, {3}, "take no part"));
  EXPECT_THAT(result.problems, found(Check::partition, 1, 1, {3}, "take no part"));
}

TEST(Broken, ABucketIsMissing) {
  Program program;
  program.add(mean_of(0, {0, 1, 2, 3}));
  const Verification result = check({program});
  EXPECT_THAT(result.problems, found(Check::partition, 0, 1, {0, 1, 2, 3}, "take no part"));
}

TEST(Broken, ARankIsInTwoGroups) {
  const Verification result = check({step({{0, 1, 2}, {2, 3}})});
  EXPECT_FALSE(result.partition);
  EXPECT_THAT(result.problems,
              found(Check::partition, 0, 0, {2}, "in two groups at once: {0 1 2} and {2 3}"));
}

TEST(Broken, TwoOrdersThatDeadlock) {
  // Bucket 0's weights travel when the step is done; bucket 1's gradient is behind them on the
  // lane, but the step waits for it.
  Program program;
  Exchange late = mean_of(0, {0, 1, 2, 3});
  late.start = Start::step_done;
  program.add(late);
  program.add(gradient(1, {0, 1, 2, 3}));
  program.add(gradient(0, {0, 1, 2, 3}));
  program.add(mean_of(1, {0, 1, 2, 3}));
  const Verification result = check({program});
  EXPECT_FALSE(result.deadlock_free);
  EXPECT_THAT(result.problems, Contains(AllOf(Field(&Problem::check, Check::deadlock),
                                              Field(&Problem::what, HasSubstr("waits for")),
                                              Field(&Problem::what, HasSubstr("step_done")))));
  // The other way round it is sound, and so it is on a lane of its own.
  Program sound = program;
  std::ranges::rotate(sound.exchanges, sound.exchanges.begin() + 1);
  EXPECT_TRUE(check({sound}).deadlock_free);
  program.exchanges[0].lane = 1;
  EXPECT_TRUE(check({program}).deadlock_free);
}

TEST(Broken, ADeadlockAcrossWorkers) {
  // Rank 1 holds {0 1} back for its step_done; rank 0's gradient in {0 2} waits behind {0 1}, and
  // rank 1's step waits for the gradient of {1 2}, which waits behind {0 2} on rank 2.
  Program program;
  Exchange late = mean_of(0, {0, 1});
  late.start = Start::step_done;
  Exchange alone = mean_of(0, {2});
  program.add(late);
  program.add(alone);
  program.add(gradient(0, {0, 2}));
  program.add(gradient(0, {1}));
  program.add(gradient(1, {1, 2}));
  program.add(gradient(1, {0}));
  program.add(mean_of(1, {0, 1, 2}));
  const Verification result = check({program}, 3);
  EXPECT_FALSE(result.deadlock_free);
}

TEST(Broken, LateLanesThatOnlyWaitAreNoDeadlock) {
  // Behind an exchange that starts when the step is done, one that is due just before the next
  // forward: slow, but it ends. The quick check cannot tell, the graph can.
  Program program;
  Exchange late = mean_of(0, {0, 1, 2, 3});
  late.start = Start::step_done;
  program.add(late);
  program.add(mean_of(1, {0, 1, 2, 3}));
  EXPECT_TRUE(check({program}).ok());
}

TEST(Broken, AGroupNeverMeetsAnother) {
  const Verification result = check({step({{0, 1}, {2, 3}}), step({{0}, {1}, {2, 3}})});
  EXPECT_TRUE(result.partition);
  EXPECT_NEAR(*result.mixing_rate, 1, 1e-12);
  EXPECT_THAT(result.problems, found(Check::mixing, 0, 0, {0, 1}, "never meet"));
}

TEST(Broken, ALostSnapshot) {
  // The mean arrives a step late and replaces the update made meanwhile.
  Program program = step({{0, 1, 2, 3}});
  program.exchanges[1].due = after_step(1);
  const Verification result = check({program});
  EXPECT_THAT(result.problems,
              found(Check::lifetime, 0, 1, {0, 1, 2, 3}, "loses the update of step 1"));
}

TEST(Broken, AMergeIsDiscarded) {
  // Step 0's correction lands between the snapshot and the merge of the average of step 1.
  Program first = step({{0, 1}, {2, 3}});
  Exchange crossing = mean_of(0, {0, 2});
  crossing.lane = 1;
  crossing.due = before_forward(2);
  crossing.merge = correct();
  first.exchanges.insert(first.exchanges.begin(), crossing);
  const Verification result = check({first, step({{0, 1}, {2, 3}})});
  EXPECT_THAT(result.problems, found(Check::lifetime, 1, 0, {0}, "discards the weight"));
}

TEST(Broken, AGradientThatComesTooLate) {
  Program program;
  for (int bucket = 0; bucket < 2; ++bucket) program.add(gradient(bucket, {0, 1, 2, 3}));
  program.exchanges[0].due = before_step(1);
  const Verification result = check({program});
  EXPECT_THAT(result.problems, found(Check::lifetime, 0, 0, {0, 1, 2, 3}, "overwritten"));
}

TEST(Broken, ScatteredAndNeverGathered) {
  Program program;
  for (int bucket = 0; bucket < 2; ++bucket) {
    program.add(gradient(bucket, {0, 1, 2, 3}));
    program.exchanges.back().collective = Collective::reduce_scatter;
  }
  const Verification result = check({program});
  EXPECT_THAT(result.problems, found(Check::lifetime, 0, 0, {0, 1, 2, 3}, "no all_gather"));
  EXPECT_THAT(result.problems, found(Check::mixing, 0, 0, {0, 1, 2, 3}, "drift apart"));
}

TEST(Broken, WeightsThatMoveTheMean) {
  Program program = step({{0, 1, 2, 3}});
  program.exchanges[0].weights = {1, 2, 1, 1};
  const Verification result = check({program});
  EXPECT_EQ(result.mean_preserved, false);
  EXPECT_THAT(result.problems, found(Check::mean, 0, 0, {0, 1, 2, 3}, "the mean is not kept"));
}

TEST(Broken, ScalesThatMoveTheMean) {
  Program program = step({{0, 1, 2}, {3, 4}});
  Exchange crossing = mean_of(0, {0, 3});
  crossing.start = Start::bucket_ready;
  crossing.due = after_step(1);
  crossing.merge = correct();
  crossing.lane = 1;
  crossing.weights = crossing.scales = {3, 2};
  Program sound = program;
  Program broken = program;
  sound.exchanges.insert(sound.exchanges.begin(), crossing);
  crossing.scales = {2, 3};
  broken.exchanges.insert(broken.exchanges.begin(), crossing);
  EXPECT_EQ(check({program, sound, program}, 5).mean_preserved, true);
  const Verification result = check({program, broken, program}, 5);
  EXPECT_EQ(result.mean_preserved, false);
  EXPECT_THAT(result.problems, found(Check::mean, 1, 0, {0, 3}, "the mean is not kept"));
}

TEST(Broken, AMixThatForgetsWhatCameBetween) {
  // Each exchange keeps the mean by itself; the late one of {0 1} takes back part of what {1 2}
  // moved across its border meanwhile.
  Exchange late = mean_of(0, {0, 1});
  late.due = before_forward(2);
  late.merge = mix(0.5);
  Program first;
  first.add(late);
  first.add(mean_of(0, {2}));
  first.add(mean_of(0, {3}));
  for (const Group& group : {Group{0, 1}, Group{2, 3}}) first.add(mean_of(1, group));
  Program second = step({{0}, {1, 2}, {3}});
  const Verification result = check({first, second, step({{0, 1}, {2, 3}})});
  EXPECT_EQ(result.mean_preserved, false);
  EXPECT_THAT(result.problems,
              found(Check::mean, 1, 0, {0, 1, 2, 3}, "is not the same after this step"));
}

TEST(Broken, GradientsInGroupsOnly) {
  Program program;
  for (int bucket = 0; bucket < 2; ++bucket)
    for (const Group& group : {Group{0, 1}, Group{2, 3}}) program.add(gradient(bucket, group));
  const Verification result = check({program});
  EXPECT_THAT(result.problems, found(Check::mixing, 0, 0, {0, 1, 2, 3}, "drift apart"));
}

TEST(Broken, NothingIsExchanged) {
  EXPECT_THAT(check({Program{}}).problems,
              found(Check::mixing, 0, 0, {0, 1, 2, 3}, "nothing is exchanged"));
}

TEST(Broken, CorrectionsThatOvershoot) {
  // Two corrections in flight at once: the second repeats what the first will do.
  Program program;
  for (int bucket = 0; bucket < 2; ++bucket) {
    Exchange twice = mean_of(bucket, {0, 1, 2, 3});
    twice.due = after_step(3);
    twice.merge = correct();
    program.add(twice);
  }
  const Verification result = check({program});
  EXPECT_GT(*result.mixing_rate, 1);
  EXPECT_THAT(result.problems, found(Check::mixing, 0, 0, {0, 1, 2, 3}, "does not shrink"));
}

// Both buckets by an outer step of the world, at these steps of a round of two.
std::vector<Program> outer_steps(const Due& due, double xi) {
  Program program = step({{0, 1, 2, 3}});
  for (Exchange& exchange : program.exchanges) {
    exchange.start = Start::step_done;
    exchange.due = due;
    exchange.merge = outer(0.7, 0.9, true, xi);
  }
  return {program, Program{}};
}

TEST(Broken, AnOuterStepThatComesLate) {
  EXPECT_TRUE(check(outer_steps(before_forward(), 0)).ok());
  // With a local share it may, as long as the next one has not left.
  EXPECT_TRUE(check(outer_steps(after_step(1), 0.5)).ok());
  EXPECT_TRUE(check(outer_steps(after_step(2), 0.5)).ok());
  EXPECT_THAT(check(outer_steps(after_step(1), 0)).problems,
              found(Check::form, 0, 0, {0, 1, 2, 3}, "without a local share is due before"));
  EXPECT_THAT(check(outer_steps(after_step(3), 0.5)).problems,
              found(Check::lifetime, 2, 0, {0}, "is from a value that the weight"));
}

TEST(Broken, AFragmentWithoutATurn) {
  auto programs = outer_steps(before_forward(), 0);
  programs[1].add(programs[0].exchanges[1]);
  programs[0].exchanges.pop_back();
  EXPECT_TRUE(check(programs).ok());  // each bucket has its turn
  programs[1].exchanges.clear();
  EXPECT_THAT(check(programs).problems, found(Check::partition, 0, 1, {0, 1, 2, 3},
                                              "take no part in the exchange of weights"));
}

// Every worker's own slow weights in fixed pairs of racks: momentum above the pull drives them
// apart.
TEST(Broken, MomentumThatDrivesPairsApart) {
  const auto pairs = [](double rate, double momentum) {
    Program first = step({{0, 1}, {2, 3}});
    Program second = step({{0, 2}, {1, 3}});
    for (Program* program : {&first, &second})
      for (Exchange& exchange : program->exchanges) exchange.merge = outer(rate, momentum, false);
    return check({first, second});
  };
  const Verification sound = pairs(0.7, 0.5);
  EXPECT_TRUE(sound.ok()) << print(sound.problems.front());
  EXPECT_NEAR(*sound.mixing_rate, std::sqrt(0.5), 1e-4);  // plain averages agree in two steps
  EXPECT_THAT(pairs(3.5, 0.5).problems,
              found(Check::mixing, 0, 0, {0, 1, 2, 3}, "does not shrink"));
}

TEST(Broken, FormsThatMakeNoSense) {
  const auto form = [](auto change, const std::string& words, Group ranks = {0, 1, 2, 3}) {
    Program program = step({{0, 1, 2, 3}});
    change(program.exchanges[0]);
    const Verification result = check({program});
    EXPECT_FALSE(result.mixing_rate);
    EXPECT_THAT(result.problems, found(Check::form, 0, program.exchanges[0].bucket, ranks, words));
  };
  form([](Exchange& e) { e.group = Group(); }, "empty", {});
  form([](Exchange& e) { e.group = {2, 9}; }, "rank 9 is not alive", {2, 9});
  form([](Exchange& e) { e.bucket = 7; }, "no bucket 7");
  form([](Exchange& e) { e.weights = {1, 1}; }, "2 weights for 4 members");
  form([](Exchange& e) { e.weights = {1, 0, 1, 1}; }, "not above zero");
  form([](Exchange& e) { e.scales = {1, 1, 1, 1}; }, "without the merge correct");
  form([](Exchange& e) { e.merge = mix(1.5); }, "local share of 1.5");
  form([](Exchange& e) { e.merge = outer(1, 0, true, -0.5); }, "local share of -0.5");
  form([](Exchange& e) { e.due = before_step(); }, "not after its start");
  form([](Exchange& e) { e.due = after_step(); }, "not after its start");
  form([](Exchange& e) { e.payload = Payload::gradient; }, "was used already");
}

TEST(Broken, APeriodThatIsNone) {
  class Drifting : public Strategy {
   public:
    [[nodiscard]] BucketPlan buckets(const Trace& of, const CostModel& /*cost*/,
                                     const World& /*world*/) const override {
      return one_bucket(of);
    }
    [[nodiscard]] Program program(Step at, const World& /*world*/,
                                  const BucketPlan& /*buckets*/) const override {
      Program program;
      for (const Group& group : at % 3 == 0 ? Partition{{0, 1}, {2, 3}} : Partition{{0, 2}, {1, 3}})
        program.add(mean_of(0, group));
      return program;
    }
    [[nodiscard]] Traits traits(const World& /*world*/) const override { return {.period = 2}; }
  };
  const Verification result =
      verify({"drifting", {}, "drifting", std::make_shared<Drifting>()}, flat(4), trace());
  EXPECT_THAT(result.problems, found(Check::period, 2, -1, {0, 1, 2, 3}, "is not that of step 0"));
}

}  // namespace
}  // namespace riffle::test
