// Messages of long calls between hosts: a member that has not begun gets what may be on its way and
// no more, and once it has begun everything, in order.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "collective/point_to_point.h"
#include "support/calls.h"
#include "support/passing_engine.h"
#include "support/ranks.h"

namespace riffle::collective {
namespace {

// Knows its ways, and counts what is sent, headers apart.
class KnowingEngine : public test::PassingEngine {
 public:
  KnowingEngine(Engine& below, std::size_t way) : PassingEngine(below), way_(way) {}

  std::atomic<std::size_t> sent = 0;

  [[nodiscard]] std::size_t bytes_on_the_way(Rank) override { return way_; }
  [[nodiscard]] Request send(Rank to, Tag tag, std::span<const std::byte> data) override {
    if (tag.round != 0) sent += data.size();
    return PassingEngine::send(to, tag, data);
  }

 private:
  std::size_t way_;
};

std::vector<std::string> hosts_of_one(int n) {
  std::vector<std::string> hosts;
  for (int r = 0; r < n; ++r) hosts.push_back("host" + std::to_string(r));
  return hosts;
}

struct Setting {
  std::size_t way;    // bytes on the way to a peer, as the engine says
  std::size_t eager;  // as the options say
};

Call sum_of(test::Values& values, int members) {
  Call call;
  call.group = Membership::all(members).ranks;
  call.data = values.view();
  call.algorithm = Algorithm::recursive_doubling;  // the whole vector to the peer, at once
  return call;
}

class Held : public testing::TestWithParam<Setting> {};

TEST_P(Held, WhoHasNotBegunGetsWhatIsOnItsWay) {
  constexpr std::size_t count = 1 << 18;
  constexpr std::size_t piece = 4096;
  const auto [way, eager] = GetParam();
  const PointToPointOptions options{.piece = piece, .far_window = 64, .eager = eager};
  LoopbackWorld world(hosts_of_one(2));
  KnowingEngine ahead(world.engine(0), way);
  PointToPoint p2p(ahead, options);
  test::Values values(count, DType::f32);
  const auto early = p2p.start(sum_of(values, 2), after(Seconds(60)));
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(early->test());
  const std::size_t most = std::max(way + way / 2, eager);
  EXPECT_LE(ahead.sent, most);
  EXPECT_GT(ahead.sent + piece, most);

  KnowingEngine behind(world.engine(1), way);
  std::thread other([&] {
    PointToPoint theirs(behind, options);
    test::Values own(count, DType::f32);
    theirs.run(sum_of(own, 2), after(Seconds(60)));
  });
  early->wait();
  other.join();
  EXPECT_EQ(ahead.sent, count * sizeof(float));
}

TEST_P(Held, AShortCallWaitsForNobody) {
  const auto [way, eager] = GetParam();
  const std::size_t count = eager / sizeof(float);
  LoopbackWorld world(hosts_of_one(2));
  KnowingEngine ahead(world.engine(0), way);
  PointToPoint p2p(ahead, {.piece = 4096, .far_window = 64, .eager = eager});
  test::Values values(count, DType::f32);
  const auto early = p2p.start(sum_of(values, 2), after(Seconds(60)));
  EXPECT_EQ(ahead.sent, count * sizeof(float));
}

INSTANTIATE_TEST_SUITE_P(Ways, Held,
                         testing::Values(Setting{.way = 0, .eager = 65'536},
                                         Setting{.way = 100'000, .eager = 65'536},
                                         Setting{.way = 30'000, .eager = 65'536}));

// Random collectives of long vectors over random groups, members at random times: all correct,
// also where one message is two ranges of which the first is held and the second would not be.
TEST(HeldMessages, ArriveInOrder) {
  constexpr int ranks = 6;
  for (const std::uint64_t seed : {1, 2}) {
    Random random(seed);
    std::vector<test::MadeCall> calls;
    for (int c = 0; c < 60; ++c) {
      std::vector<Rank> members;
      for (const int rank : random.permutation(ranks))
        if (members.size() < 2 || random.below(2) == 0) members.push_back(rank);
      calls.push_back(test::make_call(random, Group(members), 4000));
      calls.back().call.step = c;
      if (c % 2 == 0) calls.back().call.algorithm = Algorithm::halving_doubling;
    }
    LoopbackWorld world(hosts_of_one(ranks));
    test::run_ranks(world, [&](Rank rank) {
      Random own(seed * 100 + static_cast<std::uint64_t>(rank));
      KnowingEngine engine(world.engine(rank), seed == 1 ? 0 : 600);
      PointToPoint p2p(engine, {.piece = 700, .far_window = 3, .eager = 256});
      for (const test::MadeCall& made : calls) {
        const int me = made.call.group.index_of(rank);
        if (me < 0) continue;
        if (own.below(4) == 0)
          std::this_thread::sleep_for(std::chrono::microseconds(own.below(500)));
        test::Values values = input_of(made, me);
        Call call = made.call;
        call.data = values.view();
        p2p.run(call, after(Seconds(60)));
        EXPECT_EQ(check(made, me, values), "") << describe(made) << " at " << rank;
      }
    });
  }
}

// Halving among 8: member 1 sends blocks 5, 6, 7 and 0 at first, as two ranges with one tag. The
// first is too long for a member that has not begun, the second is not.
TEST(HeldMessages, AShorterRangeDoesNotOvertake) {
  constexpr int ranks = 8;
  constexpr std::size_t block = 1024;
  LoopbackWorld world(hosts_of_one(ranks));
  test::run_ranks(world, [&](Rank rank) {
    KnowingEngine engine(world.engine(rank), 0);
    PointToPoint p2p(engine, {.piece = ranks * block, .far_window = 1, .eager = 2 * block});
    std::vector<float> values(ranks * block / sizeof(float));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    Call call;
    call.group = Membership::all(ranks).ranks;
    call.algorithm = Algorithm::halving_doubling;
    call.data = tensor_view(std::span(values));
    p2p.run(call, after(Seconds(30)));
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], static_cast<float>(i)) << "element " << i;  // the mean of equal values
  });
}

}  // namespace
}  // namespace riffle::collective
