#include "report/groups.h"

#include <gtest/gtest.h>

namespace riffle::report {
namespace {

World two_racks() {
  return World(parse_cluster("racks:2x3,inner=20us/10Gbps,outer=200us/1Gbps"));
}
Exchange mean_of(Group group) {
  return {.payload = Payload::weight,
          .group = std::move(group),
          .start = Start::bucket_stepped,
          .due = before_forward()};
}

TEST(Groups, ALetterIsAGroupAndADotIsAlone) {
  Program program;
  program.add(mean_of({3, 4, 5}));
  program.add(mean_of({0, 1}));
  program.add(mean_of({2}));
  EXPECT_EQ(beside({draw_groups("step 0", program, 0, two_racks(), {})}, {}),
            "step 0\n0-2  A A ·\n3-5  B B B\n\n");
}

TEST(Groups, AStarMarksADelayedExchange) {
  Program program;
  Exchange crossing = mean_of({0, 3});
  crossing.lane = 1;
  crossing.start = Start::bucket_ready;
  crossing.due = after_step(2);
  crossing.merge = correct(3);
  program.add(crossing);
  program.add(mean_of({0, 1, 2}));
  program.add(mean_of({3, 4, 5}));
  EXPECT_EQ(beside({draw_groups("step 1", program, 0, two_racks(), {})}, {}),
            "step 1\n0-2  A*A A\n3-5  B*B B\n\n");
}

TEST(Groups, AShiftNamesThePeer) {
  Program program;
  Exchange shift = mean_of({0, 1, 2, 3});
  shift.collective = Collective::shift;
  shift.shift = 1;
  program.add(shift);
  const World world(parse_cluster("flat:4,latency=1us,bandwidth=1Gbps"));
  EXPECT_EQ(beside({draw_groups("step 0", program, 0, world, {})}, {}),
            "step 0\n0-1  0←3 1←0\n2-3  2←1 3←2\n\n");
}

TEST(Groups, PicturesStandSideBySideAsFarAsTheyFit) {
  Program program;
  program.add(mean_of({0, 1, 2, 3, 4, 5}));
  const std::vector<GroupPicture> pictures{draw_groups("step 0", {}, 0, two_racks(), {}),
                                           draw_groups("step 1", program, 0, two_racks(), {}),
                                           draw_groups("step 2", {}, 0, two_racks(), {})};
  EXPECT_EQ(beside(pictures, {.width = 40}),
            "step 0               step 1\n"
            "nothing travels:     0-2  A A A\n"
            "each trains alone    3-5  A A A\n\n"
            "step 2\n"
            "nothing travels:\n"
            "each trains alone\n\n");
}

TEST(Groups, ColourDoesNotShiftColumns) {
  Program program;
  program.add(mean_of({0, 1, 2, 3, 4, 5}));
  const GroupStyle style{.colour = true, .width = 100};
  const auto picture = draw_groups("step 0", program, 0, two_racks(), style);
  EXPECT_EQ(picture.width(), 11);
  EXPECT_NE(picture.lines[1].text.find("\x1b[34mA\x1b[0m"), std::string::npos);
}

}  // namespace
}  // namespace riffle::report
