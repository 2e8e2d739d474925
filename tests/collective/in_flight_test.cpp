// Several calls under way at once: random overlapping groups, lanes side by side, all correct.
#include <gtest/gtest.h>

#include <deque>

#include "collective/point_to_point.h"
#include "support/calls.h"
#include "support/ranks.h"

namespace riffle::collective {
namespace {

using test::MadeCall;
using test::Values;

Group random_group(Random& random, int world) {
  std::vector<Rank> ranks;
  for (const int rank : random.permutation(world))
    if (ranks.empty() || random.below(2) == 0) ranks.push_back(rank);
  return Group(ranks);
}

std::vector<MadeCall> random_calls(std::uint64_t seed, int world, int count, int lanes) {
  Random random(seed);
  std::vector<MadeCall> calls;
  for (int c = 0; c < count; ++c) {
    calls.push_back(test::make_call(random, random_group(random, world), 3000));
    calls.back().call.lane = static_cast<int>(random.below(static_cast<std::uint64_t>(lanes)));
    calls.back().call.step = c;
  }
  return calls;
}

// One rank's calls, each lane in order, all lanes at once.
class Worker {
 public:
  Worker(Engine& engine, const std::vector<MadeCall>& calls, int lanes)
      : rank_(engine.rank()), p2p_(engine, {.piece = 512, .window = 2}), lanes_(lanes) {
    for (const MadeCall& made : calls)
      if (made.call.group.contains(rank_)) lanes_[made.call.lane].todo.push_back(&made);
  }

  void run() {
    for (bool left = true; left;) {
      left = false;
      for (Lane& lane : lanes_) left |= advance(lane);
      std::this_thread::yield();
    }
  }

 private:
  struct Lane {
    std::deque<const MadeCall*> todo;
    std::unique_ptr<Values> values;
    std::unique_ptr<PatternOperation> running;
  };

  // Whether there is more to do on the lane.
  bool advance(Lane& lane) {
    if (lane.running == nullptr) {
      if (lane.todo.empty()) return false;
      const MadeCall& made = *lane.todo.front();
      lane.values = std::make_unique<Values>(input_of(made, made.call.group.index_of(rank_)));
      Call call = made.call;
      call.data = lane.values->view();
      lane.running = p2p_.start(call, after(Seconds(100)));
    }
    if (!lane.running->test()) return true;
    const MadeCall& made = *lane.todo.front();
    EXPECT_EQ(check(made, made.call.group.index_of(rank_), *lane.values), "")
        << describe(made) << " at " << rank_;
    lane.running.reset();
    lane.todo.pop_front();
    return !lane.todo.empty();
  }

  Rank rank_;
  PointToPoint p2p_;
  std::vector<Lane> lanes_;
};

TEST(InFlight, RandomGroupsAndLanes) {
  constexpr int world_size = 8;
  constexpr int lanes = 5;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto calls = random_calls(seed, world_size, 200, lanes);
    LoopbackWorld world(test::hosts_of_three(world_size));
    test::run_ranks(world, [&](Rank rank) { Worker(world.engine(rank), calls, lanes).run(); });
  }
}

// Lanes on threads of their own, each blocking.
TEST(InFlight, AThreadPerLane) {
  constexpr int world_size = 4;
  constexpr int lanes = 3;
  const auto calls = random_calls(7, world_size, 150, lanes);
  LoopbackWorld world(world_size);
  test::run_ranks(world, [&](Rank rank) {
    PointToPoint p2p(world.engine(rank), {.piece = 1024, .window = 3});
    std::vector<std::thread> threads;
    for (int lane = 0; lane < lanes; ++lane)
      threads.emplace_back([&, lane] {
        try {
          for (const MadeCall& made : calls) {
            const int me = made.call.group.index_of(rank);
            if (made.call.lane != lane || me < 0) continue;
            Values values = input_of(made, me);
            Call call = made.call;
            call.data = values.view();
            p2p.run(call, after(Seconds(100)));
            EXPECT_EQ(check(made, me, values), "") << describe(made) << " at " << rank;
          }
        } catch (const std::exception& error) {
          ADD_FAILURE() << "rank " << rank << " lane " << lane << ": " << error.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
  });
}

}  // namespace
}  // namespace riffle::collective
