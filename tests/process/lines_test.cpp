#include "process/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace riffle::process {
namespace {

using testing::ElementsAre;

class Lines : public testing::Test {
 protected:
  std::vector<std::string> seen;
  LineBuffer buffer{[this](std::string_view line) { seen.emplace_back(line); }};
  LineBuffer::Clock::time_point now = LineBuffer::Clock::now();
};

TEST_F(Lines, AreGivenOutWhenTheyAreWhole) {
  buffer.feed("one\ntw", now);
  EXPECT_THAT(seen, ElementsAre("one"));
  buffer.feed("o\r", now);
  buffer.feed("\n\nthr", now);
  EXPECT_THAT(seen, ElementsAre("one", "two", ""));
  buffer.finish();
  buffer.finish();
  EXPECT_THAT(seen, ElementsAre("one", "two", "", "thr"));
}

TEST_F(Lines, ProgressBarsAreShownOnceASecond) {
  using std::chrono::milliseconds;
  for (int percent = 0; percent <= 100; ++percent)
    buffer.feed("\r" + std::to_string(percent) + "%", now += milliseconds(30));
  EXPECT_THAT(seen, ElementsAre("0%", "34%", "68%"));
  buffer.feed("\n", now);
  EXPECT_EQ(seen.back(), "100%") << "the last state is a line";
}

TEST_F(Lines, EndlessLinesAreGivenOutInPieces) {
  buffer.feed(std::string(LineBuffer::limit * 2 + 1, 'x'), now);
  EXPECT_EQ(seen.size(), 2U);
  buffer.finish();
  EXPECT_THAT(seen, ElementsAre(std::string(LineBuffer::limit, 'x'),
                                std::string(LineBuffer::limit, 'x'), "x"));
}

}  // namespace
}  // namespace riffle::process
