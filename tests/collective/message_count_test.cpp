// What the engine is asked to send is what the pattern says, so what the simulator and the cost
// model count is what travels.
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "collective/plan.h"
#include "collective/point_to_point.h"
#include "support/passing_engine.h"
#include "support/ranks.h"
#include "support/values.h"

namespace riffle::collective {
namespace {

// Counts what is sent, headers apart.
class CountingEngine : public test::PassingEngine {
 public:
  using PassingEngine::PassingEngine;

  std::atomic<std::size_t> messages = 0;
  std::atomic<std::size_t> bytes = 0;
  std::atomic<std::size_t> headers = 0;

  [[nodiscard]] Request send(Rank to, Tag tag, std::span<const std::byte> data) override {
    if (tag.round == 0) {
      ++headers;
    } else {
      ++messages;
      bytes += data.size();
    }
    return PassingEngine::send(to, tag, data);
  }
};

struct Count {
  std::size_t messages = 0;
  std::size_t bytes = 0;
  std::size_t headers = 0;
  bool operator==(const Count&) const = default;
};

// A run of blocks that goes around the end of the vector is sent as two messages.
Count count_of(const pattern::Pattern& pattern, int member, std::size_t block_bytes) {
  Count count;
  std::set<int> peers;
  std::vector<pattern::Message> messages;
  for (int round = 0; round < pattern.rounds(); ++round) pattern.sends(member, round, messages);
  for (const pattern::Message& message : messages) {
    count.messages += message.first + message.count > pattern.blocks() ? 2 : 1;
    count.bytes += static_cast<std::size_t>(message.count) * block_bytes;
    peers.insert(message.to);
  }
  count.headers = peers.size();
  return count;
}

TEST(MessageCount, EqualsThePattern) {
  constexpr std::size_t block_elements = 16;  // one line of 64 bytes, so that blocks are equal
  for (const int n : {2, 3, 4, 5, 8, 11})
    for (const Algorithm algorithm :
         {Algorithm::ring, Algorithm::halving_doubling, Algorithm::recursive_doubling,
          Algorithm::direct, Algorithm::two_level})
      for (const Operation operation :
           {Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather,
            Operation::broadcast, Operation::shift}) {
        Call call;
        call.operation = operation;
        call.group = Membership::all(n).ranks;
        call.algorithm = algorithm;
        call.places = 1;
        for (int m = 0; m < n; ++m) {
          if (m % 3 == 0) call.racks.emplace_back();
          call.racks.back().push_back(m);
        }
        const auto pattern = pattern_of(call);
        LoopbackWorld world(n);
        test::run_ranks(world, [&](Rank rank) {
          CountingEngine engine(world.engine(rank));
          PointToPoint p2p(engine);
          test::Values values(static_cast<std::size_t>(pattern->blocks()) * block_elements,
                              DType::f32);
          Call mine = call;
          mine.data = values.view();
          p2p.run(mine, after(Seconds(60)));
          const Count sent{engine.messages, engine.bytes, engine.headers};
          EXPECT_EQ(sent, count_of(*pattern, rank, 64))
              << name_of(operation) << " " << name_of(algorithm) << " " << n << " rank " << rank
              << ": " << sent.messages << " messages, " << sent.bytes << " bytes, " << sent.headers
              << " headers";
        });
      }
}

}  // namespace
}  // namespace riffle::collective
