#include "base/json.h"

#include <gmock/gmock.h>

#include <limits>

#include "refusal.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Json, BrokenTextsAreRefusedWithTheirPlace) {
  for (const char* bad : {"", "{", "[1,", "{\"a\": }", "nul", "\"\\x\"", "{\"a\": NaN}",
                          "[Infinity]", "[-Infinity]", "\xff\xfe", "[1] 2", "{'a': 1}"})
    EXPECT_THAT(refusal([&] { parse_json(bad, "a.json"); }), StartsWith("a.json: not valid JSON"))
        << bad;
  EXPECT_EQ(refusal([] { parse_json("{\"a\": 12", "a.json"); }),
            "a.json: not valid JSON at byte 9 of 8");
  EXPECT_EQ(refusal([] { parse_json("[1e999]", "a.json"); }), "a.json: a number does not fit");
}

TEST(Json, EveryPrefixOfADocumentIsRefused) {
  const std::string text = R"({"riffle": "x", "list": [1, 2.5e3, {"a": "b\"["}], "t": true})";
  EXPECT_NO_THROW(parse_json(text, "a.json"));
  for (std::size_t size = 0; size < text.size(); ++size)
    refusal([&] { parse_json(std::string_view(text).substr(0, size), "a.json"); });
}

TEST(Json, DeepNestingIsRefusedBeforeItHurts) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_NO_THROW(parse_json(nested(64), "a.json"));
  EXPECT_EQ(refusal([&] { parse_json(nested(65), "a.json"); }),
            "a.json: JSON nested deeper than 64 levels at byte 64");
  refusal([] { parse_json(std::string(10'000'000, '['), "a.json"); });
  refusal([] { parse_json("{\"a\":" + std::string(1'000'000, '{'), "a.json"); });
  EXPECT_NO_THROW(parse_json("\"" + std::string(100, '[') + "\"", "a.json"));
}

TEST(Json, ObjectsWithManyFieldsAreRefused) {
  std::string text = "{\"k\": [{}, {}]";
  for (int i = 0; i < 4095; ++i) text += fmt::format(", \"{}:\": 1", i);
  EXPECT_NO_THROW(parse_json(text + "}", "a.json"));
  EXPECT_THAT(refusal([&] { parse_json(text + ", \"one more\": 1}", "a.json"); }),
              HasSubstr("more than 4096 fields"));
}

TEST(JsonReader, NamesThePathAndTheValue) {
  const Json json =
      parse_json(R"({"list": [{"n": -1, "t": "x", "big": 18446744073709551615}]})", "a.json");
  const JsonReader reader(json, "a.json");
  const JsonReader item = reader.at("list").at(std::size_t{0});
  EXPECT_EQ(refusal([&] { (void)item.at("n").number_at_least(0); }),
            "a.json: list[0]: n: '-1': must be at least 0");
  EXPECT_EQ(refusal([&] { (void)item.at("missing"); }),
            "a.json: list[0]: field \"missing\" is missing");
  EXPECT_EQ(refusal([&] { (void)item.at("t").number(); }),
            "a.json: list[0]: t: '\"x\"': expected a number");
  EXPECT_EQ(refusal([&] { (void)reader.at("list").text(); }),
            "a.json: list: 'array': expected a text");
  EXPECT_THAT(refusal([&] { (void)item.at("big").integer(0, 1 << 30); }),
              HasSubstr("must be from"));
  EXPECT_THAT(refusal([&] { (void)item.at("t").boolean(); }), HasSubstr("true or false"));
  EXPECT_THAT(refusal([&] { (void)item.size(); }), HasSubstr("expected a list"));
  EXPECT_THAT(refusal([&] { (void)reader.at("list").at("n"); }), HasSubstr("expected an object"));
}

TEST(JsonReader, WholeNumbersAreExact) {
  const auto integer = [](const char* text, std::int64_t low, std::int64_t high) {
    const Json json = parse_json(text, "a");
    return JsonReader(json, "a").integer(low, high);
  };
  const std::int64_t limit = std::int64_t{1} << 53;
  EXPECT_EQ(integer("9007199254740992", 0, limit), limit);
  EXPECT_EQ(integer("1e3", 0, limit), 1000);
  EXPECT_EQ(integer("-5", -5, 5), -5);
  for (const char* bad : {"9007199254740993", "0.5", "-1", "1e300", "-1e300",
                          "18446744073709551615", "9223372036854775808"})
    refusal([&] { integer(bad, 0, limit); });
}

TEST(JsonReader, ADocumentHasItsKindAndVersion) {
  const auto check = [](const char* text) {
    const Json json = parse_json(text, "a.json");
    JsonReader(json, "a.json").expect_document("trace", 1);
  };
  EXPECT_NO_THROW(check(R"({"riffle": "trace", "version": 1})"));
  EXPECT_EQ(refusal([&] { check(R"({"riffle": "trace", "version": 2})"); }),
            "a.json: version: '2': this riffle reads version 1 of a trace");
  EXPECT_EQ(refusal([&] { check(R"({"riffle": "plan", "version": 1})"); }),
            "a.json: riffle: '\"plan\"': expected \"trace\"");
  refusal([&] { check(R"({"version": 1})"); });
  refusal([&] { check("[]"); });
}

TEST(Json, TextThatIsNoUtf8IsMadeSo) {
  EXPECT_EQ(valid_utf8("mod\xc3\xa8le"), "mod\xc3\xa8le");
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a\xef\xbf\xbd"
            "b");
}

}  // namespace
}  // namespace riffle
