#include "riffle/program.h"

#include <gmock/gmock.h>

#include "refusal.h"

namespace riffle {
namespace {

using testing::HasSubstr;

constexpr std::string_view kProgram =
    R"({"riffle": "program", "version": 1, "exchanges": [{"bucket": 3, "payload": "weight", )"
    R"("group": [0, 1], "weights": [1, 2], "collective": "shift", "shift": 1, "algorithm": "ring", )"
    R"("lane": 1, "start": "bucket_stepped", "due": {"steps": 1, "point": "before_forward"}, )"
    R"("merge": {"kind": "correct", "scale": 4}, "wire": "bf16"}]})";

TEST(Program, PrintsAnExchangeALine) {
  const Program program = program_from_json(kProgram, "p.json");
  EXPECT_EQ(print(program),
            "bucket 3 weight shift(1) {0 1}, bucket_stepped -> before_forward +1, correct 4, "
            "weights 1 2, ring, lane 1, wire bf16\n");
  Exchange exchange;
  exchange.group = {0, 1, 2};
  EXPECT_EQ(print(exchange),
            "bucket 0 gradient all_reduce {0 1 2}, bucket_ready -> before_step, replace");
  exchange.merge = mix(0.25);
  EXPECT_THAT(print(exchange), HasSubstr("before_step, mix 0.25"));
  exchange.merge = outer(0.7, 0.9);
  EXPECT_THAT(print(exchange), HasSubstr("before_step, outer 0.7 momentum 0.9"));
  exchange.merge = outer(1, 0.5, false, 0.25);
  EXPECT_THAT(print(exchange), HasSubstr("outer 1 momentum 0.5 heavy-ball xi 0.25"));
  EXPECT_EQ(program_from_json(to_json(Program{{exchange}}), "p.json").exchanges[0], exchange);
}

TEST(Program, AnOuterStepIsNesterovsUnlessItSaysOtherwise) {
  std::string text(kProgram);
  const std::string_view scale = R"({"kind": "correct", "scale": 4})";
  text.replace(text.find(scale), scale.size(),
               R"({"kind": "outer", "learning_rate": 0.7, "momentum": 0.9})");
  EXPECT_EQ(program_from_json(text, "p.json").exchanges[0].merge, outer(0.7, 0.9));
}

TEST(Program, BadJsonNamesTheFieldAndTheValue) {
  const auto with = [](std::string_view from, std::string_view to) {
    std::string text(kProgram);
    text.replace(text.find(from), from.size(), to);
    return refusal([&] { program_from_json(text, "p.json"); });
  };
  EXPECT_EQ(with("\"bucket\": 3", "\"bucket\": -3"),
            "p.json: exchanges[0]: bucket: '-3': must be from 0 to 1073741824");
  EXPECT_THAT(
      with("\"weight\"", "\"wieght\""),
      HasSubstr("p.json: exchanges[0]: payload: unknown payload 'wieght' (nearest: weight)"));
  EXPECT_EQ(with("[0, 1]", "[1, 1]"), "p.json: exchanges[0]: group: group: rank 1 occurs twice");
  EXPECT_EQ(with("[1, 2]", "[1]"),
            "p.json: exchanges[0]: weights: 'array': needs one weight per member");
  EXPECT_EQ(with("[1, 2]", "[1, -2]"),
            "p.json: exchanges[0]: weights[1]: '-2': must be at least 0");
  EXPECT_THAT(with("\"ring\"", "\"rnig\""), HasSubstr("nearest: ring"));
  EXPECT_THAT(with("\"shift\": 1", "\"shfit\": 1"), HasSubstr("field \"shift\" is missing"));
  EXPECT_THAT(with("\"scale\": 4", "\"xi\": 4"), HasSubstr("merge: field \"scale\" is missing"));
  EXPECT_THAT(with("\"version\": 1", "\"version\": 9"), HasSubstr("version: '9'"));
  EXPECT_THAT(with("\"bf16\"", "\"bf17\""), HasSubstr("known: f32, bf16, f16, int8"));
  EXPECT_EQ(refusal([] { parse_wire("f64", "wire"); }),
            "wire: unknown wire 'f64' (nearest: f32); known: f32, bf16, f16, int8");
}

TEST(Due, LaterIsGreater) {
  EXPECT_LT(before_step(), after_step());
  EXPECT_LT(after_step(), before_forward());
  EXPECT_LT(before_forward(1), before_step(2));
}

}  // namespace
}  // namespace riffle
