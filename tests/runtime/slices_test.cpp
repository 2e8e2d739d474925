// Work in slices: in turns with who waits, to its end, given up, and with its error.
#include "runtime/slices.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace riffle::runtime {
namespace {

TEST(Slices, TakeTurns) {
  std::string text;
  Slices slices([&](const Slices::Rest& rest) {
    text += "a";
    rest();
    text += "b";
    rest();
    text += "c";
  });
  EXPECT_EQ(text, "");
  EXPECT_FALSE(slices.run());
  text += "1";
  EXPECT_FALSE(slices.run());
  text += "2";
  EXPECT_TRUE(slices.run());
  EXPECT_EQ(text, "a1b2c");
  EXPECT_TRUE(slices.run()) << "over is over";
}

TEST(Slices, AreGivenUpWhereverTheyAre) {
  bool ended = false;
  bool unwound = false;
  struct Guard {
    bool& unwound;
    ~Guard() { unwound = true; }
  };
  {
    const Slices never([&](const Slices::Rest&) { ended = true; });
    Slices half([&](const Slices::Rest& rest) {
      const Guard guard{unwound};
      rest();
      ended = true;
    });
    EXPECT_FALSE(half.run());
  }
  EXPECT_FALSE(ended);
  EXPECT_TRUE(unwound);
}

TEST(Slices, ThrowWhatTheWorkThrew) {
  Slices slices([](const Slices::Rest& rest) {
    rest();
    throw std::runtime_error("gone");
  });
  EXPECT_FALSE(slices.run());
  EXPECT_THROW(slices.run(), std::runtime_error);
}

}  // namespace
}  // namespace riffle::runtime
