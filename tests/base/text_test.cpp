#include "base/text.h"

#include <gmock/gmock.h>

#include "refusal.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Text, SplitsAndTrims) {
  EXPECT_THAT(split("a,,b", ','), ElementsAre("a", "", "b"));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split(",", ','), ElementsAre("", ""));
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n "), "");
}

TEST(Text, QuotesOnOneLineAndCutsLongText) {
  EXPECT_EQ(quote("a\nb\x7f"), "'a?b?'");
  EXPECT_EQ(quote(std::string(100, 'x')).size(), 60U + 2 + 3);
  EXPECT_EQ(one_line("tab\tnul" + std::string(1, '\0')), "tab?nul?");
}

TEST(Text, NumbersAreWholeTexts) {
  EXPECT_EQ(parse_number("-1.5e3", "x"), -1500);
  EXPECT_EQ(parse_integer("-9223372036854775808", "x"), std::numeric_limits<std::int64_t>::min());
  EXPECT_TRUE(parse_bool("true", "x"));
  for (const char* bad : {"", " 1", "1 ", "1x", "nan", "inf", "-inf", "1e999", "0x10", "+1", "1,5"})
    EXPECT_THAT(refusal([&] { parse_number(bad, "field"); }), HasSubstr("field: ")) << bad;
  for (const char* bad : {"", "1.0", "9223372036854775808", "1e3", "--1"})
    EXPECT_THAT(refusal([&] { parse_integer(bad, "field"); }), HasSubstr("not a whole number"));
  EXPECT_THAT(refusal([] { parse_bool("yes", "field"); }), HasSubstr("'yes'"));
}

TEST(Text, AWrongNameIsAnsweredWithTheNearestAndTheKnown) {
  const std::vector<std::string> known{"flat", "racks", "sites"};
  EXPECT_EQ(unknown_name("kind", "rack", known),
            "unknown kind 'rack' (nearest: racks); known: flat, racks, sites");
  EXPECT_EQ(unknown_name("kind", "x", {}), "unknown kind 'x'; known: ");
  EXPECT_THAT(unknown_name("kind", std::string(100'000, 'y'), known), HasSubstr("known: flat"));
}

}  // namespace
}  // namespace riffle
