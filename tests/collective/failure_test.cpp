// A rank that dies or freezes in, or before, a call: whoever depends on it gets an error that names
// it, nobody hangs, and the survivors go on together in the next epoch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collective/point_to_point.h"
#include "support/calls.h"
#include "support/ranks.h"

namespace riffle::collective {
namespace {

using test::MadeCall;
using test::Values;

enum class Fault { kill, freeze };

struct Scene {
  Operation operation;
  Algorithm algorithm;
  Fault fault;
  int ranks;
  int steps;  // how often the victim moves on before it stops; 0: it never calls
};

MadeCall made_call(const Scene& scene) {
  MadeCall made;
  made.call.operation = scene.operation;
  made.call.group = Membership::all(scene.ranks).ranks;
  made.call.algorithm = scene.algorithm;
  made.call.root = scene.steps == 4 ? 0 : scene.ranks / 2;  // the victim, or another
  made.call.places = 1;
  made.call.step = 17;
  made.call.bucket = 3;
  made.count = 5000;
  made.seed = 5;
  return made;
}

// docs/collectives.md promises that these parts of a survivor's data are as they were.
void expect_kept(const MadeCall& made, int member, const Values& values) {
  Slice kept;
  if (made.call.operation == Operation::all_gather)
    kept = slice_of(made.count, made.dtype, made.call.group.size(), member);
  if (made.call.operation == Operation::broadcast && member == made.call.root)
    kept = {0, made.count};
  const Values before = input_of(made, member);
  for (std::size_t i = kept.begin; i < kept.begin + kept.count; ++i)
    ASSERT_EQ(values.at(i), before.at(i)) << "element " << i << " at member " << member;
}

bool needs_everybody(Operation operation) {
  return operation != Operation::broadcast && operation != Operation::shift;
}

void play(const Scene& scene) {
  SCOPED_TRACE(fmt::format("{} {} {} ranks, {} after {} moves", name_of(scene.operation),
                           name_of(scene.algorithm), scene.ranks,
                           scene.fault == Fault::kill ? "kill" : "freeze", scene.steps));
  const Rank victim = scene.ranks / 2;
  const MadeCall made = made_call(scene);
  const PointToPointOptions options{.piece = 256, .window = 2};
  // What the victim was doing outlives the scene: a dead rank says nothing to anybody.
  Values victims_values = input_of(made, victim);
  LoopbackWorld world(test::hosts_of_three(scene.ranks),
                      {.failure_timeout = Seconds(0.2), .heartbeat_interval = Seconds(0.02)});
  PointToPoint victims_p2p(world.engine(victim), options);
  std::unique_ptr<PatternOperation> victims_call;

  test::run_ranks(world, [&](Rank rank) {
    if (rank == victim) {
      if (scene.steps > 0) {
        Call call = made.call;
        call.data = victims_values.view();
        victims_call = victims_p2p.start(call, after(Seconds(30)));
        for (int i = 1; i < scene.steps; ++i) (void)victims_call->test();
      }
      scene.fault == Fault::kill ? world.kill(victim) : world.freeze(victim);
      return;
    }
    PointToPoint p2p(world.engine(rank), options);
    Values values = input_of(made, rank);
    Call call = made.call;
    call.data = values.view();
    const auto began = Clock::now();
    try {
      p2p.run(call, after(Seconds(30)));
      EXPECT_TRUE(!needs_everybody(scene.operation) || scene.steps > 0);
      EXPECT_EQ(check(made, rank, values), "");
    } catch (const CommError& error) {
      EXPECT_EQ(error.rank(), victim) << error.what();
      EXPECT_TRUE(error.failure() == CommFailure::died || error.failure() == CommFailure::frozen)
          << error.what();
      EXPECT_EQ(error.operation(), name_of(scene.operation)) << error.what();
      EXPECT_EQ(error.group(), made.call.group) << error.what();
      EXPECT_EQ(error.step(), 17) << error.what();
      EXPECT_EQ(error.bucket(), 3) << error.what();
      expect_kept(made, rank, values);
    }
    EXPECT_LT(Seconds(Clock::now() - began), Seconds(10)) << "nobody should wait for a deadline";

    MadeCall next = made;
    std::vector<Rank> survivors;
    for (const Rank each : made.call.group)
      if (each != victim) survivors.push_back(each);
    next.call.group = Group(survivors);
    next.call.root = 0;
    next.call.epoch = 1;
    const int me = next.call.group.index_of(rank);
    Values again = input_of(next, me);
    Call retry = next.call;
    retry.data = again.view();
    p2p.run(retry, after(Seconds(30)));
    EXPECT_EQ(check(next, me, again), "");
  });
}

TEST(Failure, ADroppedCallIsToldToTheOthers) {
  const MadeCall made = made_call({Operation::all_reduce, Algorithm::ring, Fault::kill, 3, 1});
  LoopbackWorld world(3);
  test::run_ranks(world, [&](Rank rank) {
    PointToPoint p2p(world.engine(rank));
    Values values = input_of(made, rank);
    Call call = made.call;
    call.data = values.view();
    if (rank == 1) {
      (void)p2p.start(call, after(Seconds(30)));
      return;
    }
    try {
      p2p.run(call, after(Seconds(30)));
      ADD_FAILURE() << "rank " << rank << " noticed nothing";
    } catch (const CommError& error) {
      EXPECT_EQ(error.failure(), CommFailure::aborted) << error.what();
      EXPECT_EQ(error.rank(), 1) << error.what();
    }
  });
}

class FailureOf : public testing::TestWithParam<std::tuple<Operation, Algorithm>> {};

TEST_P(FailureOf, IsNamedByAllWhoDependOnIt) {
  const auto [operation, algorithm] = GetParam();
  for (const int ranks : {2, 5})
    for (const int steps : {0, 1, 4, 12}) play({operation, algorithm, Fault::kill, ranks, steps});
  for (const int steps : {0, 4}) play({operation, algorithm, Fault::freeze, 5, steps});
}

INSTANTIATE_TEST_SUITE_P(
    Matrix, FailureOf,
    testing::Combine(testing::Values(Operation::all_reduce, Operation::reduce_scatter,
                                     Operation::all_gather, Operation::broadcast, Operation::shift,
                                     Operation::barrier),
                     testing::Values(Algorithm::ring, Algorithm::halving_doubling,
                                     Algorithm::recursive_doubling, Algorithm::direct,
                                     Algorithm::two_level)),
    [](const auto& param) {
      std::string name = fmt::format("{}_{}", name_of(std::get<0>(param.param)),
                                     name_of(std::get<1>(param.param)));
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace riffle::collective
