#include "report/group_lists.h"

#include <gtest/gtest.h>

namespace riffle::report {
namespace {

using Lists = std::vector<std::vector<Rank>>;

TEST(GroupLists, EachOnceInOrderWithoutLonelyOnes) {
  Program program;
  for (const Group& group : {Group{2, 3}, Group{0, 1}, Group{4}, Group{2, 3}})
    program.add({.bucket = 0, .group = group});
  program.add({.bucket = 1, .group = {0, 4}});
  EXPECT_EQ(group_lists(program, 0), (Lists{{2, 3}, {0, 1}}));
  EXPECT_EQ(group_lists(program, 1), (Lists{{0, 4}}));
  EXPECT_EQ(group_lists(program, 2), Lists{});
}

TEST(GroupLists, AShiftJoinsRings) {
  const auto shifted = [](int shift) {
    Program program;
    program.add({.group = {0, 1, 2, 3, 5, 6}, .collective = Collective::shift, .shift = shift});
    return group_lists(program, 0);
  };
  EXPECT_EQ(shifted(1), (Lists{{0, 1, 2, 3, 5, 6}}));
  EXPECT_EQ(shifted(2), (Lists{{0, 2, 5}, {1, 3, 6}}));
  EXPECT_EQ(shifted(3), (Lists{{0, 3}, {1, 5}, {2, 6}}));
  EXPECT_EQ(shifted(6), Lists{});
}

}  // namespace
}  // namespace riffle::report
