// The step machine as data: points in, actions out.
#include "schedule/machine.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "refusal.h"
#include "riffle/strategy.h"
#include "schedule/schedule.h"

namespace riffle::schedule {
namespace {

constexpr const char* kWords[] = {"complete", "snapshot", "start", "wait",
                                  "merge",    "forget",   "update"};

// "snapshot 0.1 start 0.1": each with step and index of its flight, or "b" and its bucket.
std::string words(const Actions& actions) {
  std::string text;
  for (const Action& action : actions) {
    const bool of_bucket =
        action.kind == Action::Kind::complete || action.kind == Action::Kind::update;
    text += fmt::format("{}{} {}", text.empty() ? "" : " ", kWords[static_cast<int>(action.kind)],
                        of_bucket ? fmt::format("b{}", action.bucket)
                                  : fmt::format("{}.{}", action.flight.step, action.flight.index));
  }
  return text;
}

Exchange exchange(int bucket, Start start, Due due, Merge merge = replace(),
                  Payload payload = Payload::gradient) {
  return {.bucket = bucket,
          .payload = payload,
          .group = {0, 1},
          .start = start,
          .due = due,
          .merge = merge};
}

TEST(Machine, GradientsTravelFromReadyToBeforeStep) {
  Machine machine(0);
  const Program program{{exchange(0, Start::bucket_ready, before_step()),
                         exchange(1, Start::bucket_ready, before_step())}};
  EXPECT_EQ(machine.begin(0, program, 2).size(), 2);
  EXPECT_EQ(words(machine.before_forward(1)), "");
  EXPECT_EQ(words(machine.gradient_ready(0)), "complete b0 snapshot 0.0 start 0.0");
  EXPECT_EQ(words(machine.gradient_ready(0)), "");
  EXPECT_EQ(words(machine.backward_done()), "complete b1 snapshot 0.1 start 0.1");
  EXPECT_EQ(words(machine.before_step(0)), "wait 0.0 merge 0.0 update b0");
  EXPECT_EQ(words(machine.stepped(0)), "");
  EXPECT_EQ(words(machine.step_done()), "wait 0.1 merge 0.1 update b1");
  EXPECT_TRUE(machine.delayed().empty());
}

TEST(Machine, OnlyOwnExchangesOfMoreThanOneAreFlights) {
  Machine machine(2);
  Exchange alone = exchange(0, Start::bucket_ready, before_step());
  alone.group = {2};
  EXPECT_TRUE(
      machine.begin(0, {{alone, exchange(0, Start::bucket_ready, before_step())}}, 1).empty());
}

TEST(Machine, MergesComeBeforeSnapshotsAtOnePoint) {
  Machine machine(0);
  const Program program{
      {exchange(0, Start::bucket_stepped, after_step(1), correct(), Payload::weight)}};
  machine.begin(0, program, 1);
  EXPECT_EQ(words(machine.step_done()), "complete b0 update b0 snapshot 0.0 start 0.0");
  machine.begin(1, program, 1);
  EXPECT_EQ(machine.delayed(), std::vector<FlightId>({{0, 0}}));
  (void)machine.before_step(0);
  EXPECT_EQ(words(machine.stepped(0)), "wait 0.0 merge 0.0 snapshot 1.0 start 1.0");
}

// dear: the scatter is not waited for, and the update comes in the next forward.
TEST(Machine, PostponesTheUpdateToTheNextForward) {
  const World world(parse_cluster("flat:2,latency=1us,bandwidth=1Gbps"));
  const Trace trace{
      .model = "m",
      .layers = {{"a", 10, Seconds(1), Seconds(1)}, {"b", 10, Seconds(1), Seconds(1)}},
      .source = ""};
  const NamedStrategy dear = StrategyTable::builtin().make("dear:bucket=1B");
  const BucketPlan buckets = dear->buckets(trace, CostModel(world.cluster), world);
  ASSERT_EQ(buckets.size(), 2);
  const Program program = program_of(*dear.strategy, 0, world, buckets);
  Machine machine(0);
  machine.begin(0, program, 2);
  (void)machine.backward_done();
  EXPECT_EQ(words(machine.before_step(0)), "");
  EXPECT_TRUE(machine.postpones(0));
  EXPECT_NE(machine.scattered(0), nullptr);
  EXPECT_EQ(words(machine.step_done()),
            "snapshot 0.3 start 0.3 snapshot 0.2 start 0.2");  // by bucket; lanes order them
  machine.begin(1, program, 2);
  EXPECT_TRUE(machine.is_postponed(1));
  EXPECT_EQ(words(machine.before_forward(1)), "forget 0.1 wait 0.2 merge 0.2 update b1");
  EXPECT_TRUE(machine.stepped(1).empty());
  EXPECT_FALSE(machine.is_postponed(1));
  const auto end = [&] { return riffle::refusal([&] { (void)machine.step_done(); }); };
  EXPECT_THAT(end(), testing::HasSubstr("postponed to wait_before_forward(0)"));
  // That the point was passed by a later one is not enough: the update would be lost.
  (void)machine.backward_done();
  EXPECT_THAT(end(), testing::HasSubstr("postponed to wait_before_forward(0)"));
}

TEST(Machine, WithoutPostponingGradientsAreWholeBeforeTheUpdate) {
  const World world(parse_cluster("flat:2,latency=1us,bandwidth=1Gbps"));
  const Trace trace{.model = "m", .layers = {{"a", 10, Seconds(1), Seconds(1)}}, .source = ""};
  const NamedStrategy dear = StrategyTable::builtin().make("dear");
  const BucketPlan buckets = dear->buckets(trace, CostModel(world.cluster), world);
  Machine machine(1);
  machine.begin(0, without_postponing(program_of(*dear.strategy, 0, world, buckets)), 1);
  EXPECT_EQ(words(machine.gradient_ready(0)), "complete b0 snapshot 0.0 start 0.0");
  EXPECT_EQ(words(machine.backward_done()), "snapshot 0.1 start 0.1");
  EXPECT_EQ(words(machine.before_step(0)), "wait 0.0 merge 0.0 wait 0.1 merge 0.1 update b0");
  EXPECT_FALSE(machine.postpones(0));
}

TEST(Machine, WhatStartsAtTheEndOfBackwardIsPassedBeforeItIsAwaited) {
  Machine machine(0);
  machine.begin(0, {{exchange(0, Start::backward_done, before_step())}}, 1);
  (void)machine.gradient_ready(0);
  EXPECT_EQ(words(machine.before_step(0)), "snapshot 0.0 start 0.0 wait 0.0 merge 0.0 update b0");
}

TEST(Machine, FlightsWaitForThoseThatTheyStartFromOnAnyLane) {
  Machine machine(0);
  Program program{{exchange(0, Start::bucket_ready, before_step()),
                   exchange(1, Start::bucket_ready, before_step()),
                   exchange(0, Start::backward_done, before_step())}};
  program.exchanges[2].lane = 1;
  const std::vector<Flight> flights = machine.begin(0, program, 2);
  EXPECT_TRUE(flights[0].after.empty());
  EXPECT_TRUE(flights[1].after.empty());
  EXPECT_EQ(flights[2].after, std::vector<FlightId>({{0, 0}}));
  // Where the worker itself waits in between there is nothing left to wait for.
  program.exchanges[2] =
      exchange(0, Start::step_done, before_forward(), replace(), Payload::weight);
  EXPECT_TRUE(machine.begin(1, program, 2)[2].after.empty());
}

TEST(Machine, ResumedFlightsAreMergedInOrderOfIssue) {
  Machine machine(0);
  const Exchange late = exchange(0, Start::step_done, before_step(3), correct(), Payload::weight);
  machine.begin(5, {{late}}, 1);
  machine.resume({{3, 0}, late});
  machine.resume({{4, 0}, late});
  EXPECT_EQ(machine.delayed(), std::vector<FlightId>({{3, 0}, {4, 0}}));
  machine.forget({4, 0});
  EXPECT_EQ(machine.delayed(), std::vector<FlightId>({{3, 0}}));
}

TEST(Machine, ReplacesTheProgramOfTheStepUnderWay) {
  Machine machine(0);
  const Exchange first = exchange(0, Start::bucket_ready, before_step());
  machine.begin(0, {{first}}, 1);
  (void)machine.before_forward(0);
  EXPECT_TRUE(machine.begin(0, {}, 1, true).empty());
  EXPECT_EQ(words(machine.step_done()), "complete b0 update b0");
}

TEST(Machine, RefusesWhatContradictsItself) {
  Machine machine(0);
  const Exchange postponing = exchange(0, Start::bucket_ready, before_forward());
  const Exchange mixes =
      exchange(0, Start::bucket_stepped, before_forward(), replace(), Payload::weight);
  EXPECT_THAT(riffle::refusal([&] { (void)machine.begin(0, {{postponing, mixes}}, 1); }),
              testing::HasSubstr("is postponed"));
  machine.begin(0, {}, 1);
  EXPECT_THAT(riffle::refusal([&] { (void)machine.before_step(1); }),
              testing::HasSubstr("bucket 1: there are 1"));
}

}  // namespace
}  // namespace riffle::schedule
