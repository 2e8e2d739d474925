#include "report/chart.h"

#include <gmock/gmock.h>

#include <sstream>

namespace riffle::report {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> list;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) list.push_back(line);
  return list;
}

std::size_t columns(const std::string& line) {
  std::size_t count = 0;
  for (const char c : line)
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++count;
  return count;
}

const Curves kCurves{
    "workers", "speed-up", {1, 10, 100}, {{"straight", {1, 10, 100}}, {"flat", {1, 1, 1}}}};

TEST(Chart, APowerLawIsAStraightLineFromCornerToCorner) {
  const auto drawn = lines(draw_chart(kCurves, 32, 5));
  EXPECT_EQ(drawn[0], "speed-up over workers");
  EXPECT_EQ(drawn[1], "    100 │                  ..a");
  EXPECT_EQ(drawn[3], "        │        ..a..");
  EXPECT_EQ(drawn[5], "      1 │a.........b.........b");
}

TEST(Chart, EveryLineFitsTheWidth) {
  Curves curves = kCurves;
  curves.x = {4, 512, 2048};
  curves.series[0].y = {4, 512, 123456};
  for (const int width : {40, 100, 160})
    for (const std::string& line : lines(draw_chart(curves, width)))
      EXPECT_LE(columns(line), static_cast<std::size_t>(width)) << line;
}

TEST(Chart, LargeNumbersAreWhole) {
  Curves curves = kCurves;
  curves.series[0].y = {4, 512, 1961.4};
  const std::string drawn = draw_chart(curves);
  EXPECT_THAT(drawn, HasSubstr("1961 │"));
  EXPECT_THAT(drawn, Not(HasSubstr("e+")));
}

TEST(Chart, TheKeyHasTheLastValueThereIs) {
  Curves curves = kCurves;
  curves.series[1].y = {2, 0, 0};
  curves.series.push_back({"none", {0, 0, 0}});
  const std::string drawn = draw_chart(curves);
  EXPECT_THAT(drawn, HasSubstr("a straight: 100 at 100\n"));
  EXPECT_THAT(drawn, HasSubstr("b flat: 2 at 1\n"));
  EXPECT_THAT(drawn, HasSubstr("c none: nowhere\n"));
}

TEST(Chart, NothingToDraw) {
  EXPECT_EQ(draw_chart({"x", "y", {}, {}}), "nothing to draw\n");
  EXPECT_EQ(draw_chart({"x", "y", {1, 2}, {{"refused", {0, 0}}}}), "nothing to draw\n");
}

}  // namespace
}  // namespace riffle::report
