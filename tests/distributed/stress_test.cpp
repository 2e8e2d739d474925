// Ten thousand mixed calls on five groups from two threads of each rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "distributed/teams.h"

namespace riffle::distributed {
namespace {

using test::start;

// Call `i` of a team: an all_reduce, an all_gather or a broadcast of some size.
std::future<void> make(Team& team, int i, std::vector<float>& values, Rank rank) {
  values.assign(static_cast<std::size_t>(1 + i * 37 % 700), static_cast<float>(rank + 1));
  return start(team, "mixed", [&values, i](TeamCall& call) {
    if (i % 3 == 2)
      call.collectives().broadcast(call.group(), call.group().ranks().front(), tensor_view(values),
                                   call.options());
    else
      call.collectives().all_reduce(call.group(), tensor_view(values),
                                    call.options(i % 3 == 0 ? Reduction::sum : Reduction::max));
  });
}

TEST(TeamStress, MixedCallsFromTwoThreads) {
  const std::vector<std::vector<Rank>> groups{{0, 1, 2, 3}, {0, 1}, {1, 2, 3}, {0, 2}, {3, 1}};
  constexpr int calls = 2000;
  LoopbackWorld loopback({"a", "a", "b", "b"});
  riffle::test::run_ranks(loopback, [&](Rank rank) {
    const auto world = test::world_of(loopback, rank);
    std::vector<std::unique_ptr<Team>> teams;
    for (std::size_t g = 0; g < groups.size(); ++g)
      teams.push_back(
          std::ranges::find(groups[g], rank) == groups[g].end()
              ? nullptr
              : std::make_unique<Team>(
                    world, TeamOptions{.name = g < 3 ? std::to_string(g) : "g" + std::to_string(g),
                                       .ranks = groups[g]}));
    const auto use = [&](std::size_t first) {  // every other group, interleaved
      std::vector<std::vector<std::vector<float>>> values(groups.size());
      std::vector<std::vector<std::future<void>>> started(groups.size());
      for (auto& each : values) each.resize(calls);
      for (int i = 0; i < calls; ++i)
        for (std::size_t g = first; g < groups.size(); g += 2)
          if (teams[g] != nullptr)
            started[g].push_back(make(*teams[g], i, values[g][static_cast<std::size_t>(i)], rank));
      for (std::size_t g = first; g < groups.size(); g += 2) {
        if (teams[g] == nullptr) continue;
        float sum = 0;
        for (const Rank each : groups[g]) sum += static_cast<float>(each + 1);
        const auto most = static_cast<float>(*std::ranges::max_element(groups[g]) + 1);
        const auto least = static_cast<float>(*std::ranges::min_element(groups[g]) + 1);
        for (int i = 0; i < calls; ++i) {
          started[g][static_cast<std::size_t>(i)].get();
          const float want = i % 3 == 0 ? sum : i % 3 == 1 ? most : least;
          for (const float value : values[g][static_cast<std::size_t>(i)]) ASSERT_EQ(value, want);
        }
      }
    };
    std::thread other([&] { use(1); });
    use(0);
    other.join();
  });
}

}  // namespace
}  // namespace riffle::distributed
