#include "collective/plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace riffle::collective {
namespace {

bool overlap(const pattern::Message& a, const pattern::Message& b, int blocks) {
  for (int i = 0; i < a.count; ++i)
    for (int j = 0; j < b.count; ++j)
      if ((a.first + i) % blocks == (b.first + j) % blocks) return true;
  return false;
}

// As pattern.h promises; calls post the receives of the next round on the strength of it.
void expect_room_for_the_next_round(const pattern::Pattern& pattern, const std::string& name) {
  for (int round = 1; round < pattern.rounds(); ++round)
    for (int member = 0; member < pattern.members(); ++member) {
      std::vector<pattern::Message> stored;
      std::vector<pattern::Message> sent;
      std::vector<pattern::Message> received;
      pattern.receives(member, round, stored);
      std::erase_if(stored, &pattern::Message::add);
      pattern.sends(member, round - 1, sent);
      pattern.receives(member, round - 1, received);
      for (const pattern::Message& next : stored) {
        const auto meets = [&](const pattern::Message& m) {
          return overlap(next, m, pattern.blocks());
        };
        EXPECT_TRUE(std::ranges::none_of(received, meets))
            << name << ": member " << member << " receives in round " << round - 1
            << " what is stored in the next";
        std::erase_if(sent, [&](const pattern::Message& m) { return m.to == next.from; });
        EXPECT_TRUE(std::ranges::none_of(sent, meets))
            << name << ": member " << member << " sends to others in round " << round - 1
            << " what is stored in the next";
      }
    }
}

std::vector<std::vector<int>> racks_of(int members, int width) {
  std::vector<std::vector<int>> racks;
  for (int m = 0; m < members; ++m) {
    if (m % width == 0) racks.emplace_back();
    racks.back().push_back(m);
  }
  return racks;
}

TEST(Patterns, LeaveRoomForTheNextRound) {
  for (const Operation operation : {Operation::all_reduce, Operation::reduce_scatter,
                                    Operation::all_gather, Operation::broadcast})
    for (const Algorithm algorithm :
         {Algorithm::ring, Algorithm::halving_doubling, Algorithm::recursive_doubling,
          Algorithm::direct, Algorithm::two_level})
      for (int members = 2; members <= 17; ++members)
        for (const int width : {1, 2, 3, 5}) {
          std::vector<Rank> ranks(static_cast<std::size_t>(members));
          std::iota(ranks.begin(), ranks.end(), 0);
          Call call;
          call.operation = operation;
          call.algorithm = algorithm;
          call.group = Group(ranks);
          call.racks = racks_of(members, width);
          call.root = members / 2;
          expect_room_for_the_next_round(
              *pattern_of(call), fmt::format("{} by {} among {} in racks of {}", name_of(operation),
                                             name_of(algorithm), members, width));
        }
}

}  // namespace
}  // namespace riffle::collective
