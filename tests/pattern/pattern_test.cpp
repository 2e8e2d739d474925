// Every pattern is executed on sets of contributions instead of numbers: a block is right when it
// holds each member's contribution exactly once.
#include "pattern/pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace riffle::pattern {
namespace {

// blocks[b][m]: how often member m's contribution is in block b.
using Blocks = std::vector<std::map<int, int>>;

std::vector<Blocks> run(const Pattern& pattern, std::vector<Blocks> state) {
  for (int round = 0; round < pattern.rounds(); ++round) {
    const std::vector<Blocks> before = state;
    for (int member = 0; member < pattern.members(); ++member) {
      std::vector<Message> messages;
      pattern.receives(member, round, messages);
      for (const Message& message : messages) {
        EXPECT_EQ(message.to, member);
        for (int i = 0; i < message.count; ++i) {
          const int block = (message.first + i) % pattern.blocks();
          auto& mine = state[member][block];
          if (!message.add) mine.clear();
          for (const auto& [who, times] : before[message.from][block]) mine[who] += times;
        }
      }
    }
  }
  return state;
}

std::vector<Blocks> own_contributions(const Pattern& pattern) {
  std::vector<Blocks> state;
  for (int m = 0; m < pattern.members(); ++m)
    state.emplace_back(pattern.blocks(), std::map<int, int>{{m, 1}});
  return state;
}

std::map<int, int> everybody(int n) {
  std::map<int, int> all;
  for (int m = 0; m < n; ++m) all[m] = 1;
  return all;
}

// Sends and receives are two views of the same messages.
void expect_views_agree(const Pattern& pattern) {
  for (int round = 0; round < pattern.rounds(); ++round) {
    std::vector<Message> sent;
    std::vector<Message> received;
    for (int member = 0; member < pattern.members(); ++member) {
      pattern.sends(member, round, sent);
      pattern.receives(member, round, received);
    }
    const auto order = [](const Message& a, const Message& b) {
      return std::tie(a.from, a.to, a.first) < std::tie(b.from, b.to, b.first);
    };
    std::ranges::sort(sent, order);
    std::ranges::sort(received, order);
    EXPECT_EQ(sent, received) << "round " << round;
  }
}

class PatternTest : public testing::TestWithParam<std::tuple<Algorithm, int>> {};

TEST_P(PatternTest, AllReduceGivesEverybodyEverything) {
  const auto [algorithm, n] = GetParam();
  const auto pattern = make_pattern(algorithm, Collective::all_reduce, n);
  expect_views_agree(*pattern);
  const auto result = run(*pattern, own_contributions(*pattern));
  for (int m = 0; m < n; ++m)
    for (int b = 0; b < pattern->blocks(); ++b) EXPECT_EQ(result[m][b], everybody(n));
}

TEST_P(PatternTest, ReduceScatterThenAllGather) {
  const auto [algorithm, n] = GetParam();
  const auto scatter = make_pattern(algorithm, Collective::reduce_scatter, n);
  const auto gather = make_pattern(algorithm, Collective::all_gather, n);
  expect_views_agree(*scatter);
  expect_views_agree(*gather);
  ASSERT_EQ(scatter->blocks(), n);
  auto state = run(*scatter, own_contributions(*scatter));
  for (int m = 0; m < n; ++m) {
    EXPECT_EQ(state[m][m], everybody(n));
    // Only its own block may be used from here on.
    for (int b = 0; b < n; ++b)
      if (b != m) state[m][b] = {{-1, 1}};
  }
  state = run(*gather, state);
  for (int m = 0; m < n; ++m)
    for (int b = 0; b < n; ++b) EXPECT_EQ(state[m][b], everybody(n));
}

INSTANTIATE_TEST_SUITE_P(
    AnyN, PatternTest,
    testing::Combine(testing::Values(Algorithm::ring, Algorithm::halving_doubling,
                                     Algorithm::recursive_doubling, Algorithm::direct),
                     testing::Range(1, 34)));

TEST(TwoLevelPattern, UnequalRacks) {
  for (const std::vector<std::vector<int>>& racks :
       {std::vector<std::vector<int>>{{0, 1, 2}, {3, 4}},
        {{0, 2, 4}, {1, 3, 5}},
        {{0}, {1, 2, 3}, {4, 5}},
        {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9, 10}}}) {
    int n = 0;
    for (const auto& rack : racks) n += static_cast<int>(rack.size());
    const auto pattern = make_pattern(Algorithm::two_level, Collective::all_reduce, n, racks);
    expect_views_agree(*pattern);
    const auto result = run(*pattern, own_contributions(*pattern));
    for (int m = 0; m < n; ++m)
      for (int b = 0; b < pattern->blocks(); ++b) EXPECT_EQ(result[m][b], everybody(n));
  }
}

TEST(ShiftPattern, ReachesTheMemberSomePlacesOn) {
  const auto pattern = make_pattern(Algorithm::automatic, Collective::shift, 5, {}, 2);
  const auto result = run(*pattern, own_contributions(*pattern));
  EXPECT_EQ(result[0][0], (std::map<int, int>{{0, 1}, {3, 1}}));
}

TEST(Pattern, RoundClassesCoverAllRounds) {
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::halving_doubling, Algorithm::recursive_doubling}) {
    const auto pattern = make_pattern(algorithm, Collective::all_reduce, 12);
    int rounds = 0;
    for (const RoundClass& each : pattern->round_classes()) rounds += each.times;
    EXPECT_EQ(rounds, pattern->rounds());
  }
}

}  // namespace
}  // namespace riffle::pattern
