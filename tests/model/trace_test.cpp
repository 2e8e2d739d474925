#include "riffle/trace.h"

#include <gmock/gmock.h>

#include <limits>

#include "refusal.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The example of design and docs.
constexpr std::string_view kTiny =
    R"({"riffle": "trace", "version": 1, "model": "tiny", "dtype": "f32", "batch": 32, "layers": [)"
    R"({"name": "conv1", "elements": 9408, "forward": 0.001, "backward": 0.002}]})";

TEST(Trace, ReadsTheDocumentedExample) {
  const Trace trace = trace_from_json(kTiny, "tiny.json");
  EXPECT_EQ(trace.model, "tiny");
  EXPECT_EQ(trace.batch, 32);
  EXPECT_THAT(trace.layers, ElementsAre(Layer{"conv1", 9408, Seconds(0.001), Seconds(0.002)}));
  EXPECT_EQ(trace.bytes(), Bytes{37632});
  EXPECT_EQ(print(trace),
            "tiny: 1 layers, 9408 parameters (f32, 36.8 KiB), batch 32, forward 1.00 ms, backward "
            "2.00 ms");
}

TEST(Trace, TotalsAddUp) {
  Trace trace;
  trace.dtype = DType::bf16;
  trace.layers = {{"a", 10, Seconds(1), Seconds(2)}, {"b", 20, Seconds(3), Seconds(4)}};
  trace.optimizer_step = Seconds(0.5);
  EXPECT_EQ(trace.parameters(), 30);
  EXPECT_EQ(trace.bytes(), Bytes{60});
  EXPECT_EQ(trace.bytes(trace.layers[1]), Bytes{40});
  EXPECT_EQ(trace.compute(), Seconds(10.5));
}

// Node times are powers of ten, so a sum shows which nodes went into it.
TEST(FoldNodes, TimesWithoutParametersGoWhereTheyAreReachedNext) {
  const auto node = [](const char* name, std::int64_t elements, double time) {
    return TraceNode{name, elements, Seconds(time), Seconds(time)};
  };
  const auto layers =
      fold_nodes({node("input", 0, 1), node("a", 5, 10), node("relu", 0, 100),
                  node("pool", 0, 1000), node("b", 7, 10'000), node("loss", 0, 100'000)});
  EXPECT_THAT(layers, ElementsAre(Layer{"a", 5, Seconds(11), Seconds(1111)},
                                  Layer{"b", 7, Seconds(111'100), Seconds(110'000)}));
  EXPECT_TRUE(fold_nodes({node("relu", 0, 1)}).empty());
}

TEST(Trace, BadTracesNameTheFieldAndTheValue) {
  const auto with = [](std::string_view from, std::string_view to) {
    std::string text(kTiny);
    text.replace(text.find(from), from.size(), to);
    return refusal([&] { trace_from_json(text, "tiny.json"); });
  };
  EXPECT_EQ(with("0.002", "-0.002"),
            "tiny.json: layers[0]: backward: '-0.002': must be at least 0");
  EXPECT_EQ(with("0.001", "\"1ms\""),
            "tiny.json: layers[0]: forward: '\"1ms\"': expected a number");
  EXPECT_EQ(with("9408", "0"), "tiny.json: layers: no layer has parameters");
  EXPECT_EQ(with("9408", "1.5"), "tiny.json: layers[0]: elements: '1.5': expected a whole number");
  EXPECT_THAT(with("9408", "9007199254740993"), HasSubstr("layers[0]: elements"));
  EXPECT_EQ(with("\"version\": 1", "\"version\": 2"),
            "tiny.json: version: '2': this riffle reads version 1 of a trace");
  EXPECT_EQ(with("\"batch\": 32", "\"batch\": 0"),
            "tiny.json: batch: '0': must be from 1 to 1073741824");
  EXPECT_THAT(with("\"f32\"", "\"f31\""),
              HasSubstr("tiny.json: dtype: unknown dtype 'f31' (nearest: f32)"));
  EXPECT_EQ(with("\"name\"", "\"nmae\""), "tiny.json: layers[0]: field \"name\" is missing");
  EXPECT_THAT(with("0.001", "NaN"), HasSubstr("tiny.json: not valid JSON"));
  EXPECT_EQ(with("0.001", "1e999"), "tiny.json: a number does not fit");
  EXPECT_THAT(with("\"batch\"", "\"optimizer_step\": -1, \"batch\""), HasSubstr("optimizer_step"));
}

TEST(Trace, EmptyAndTimelessTracesAreRefused) {
  const auto document = [](std::string_view layers) {
    return fmt::format(
        R"({{"riffle": "trace", "version": 1, "model": "m", "dtype": "f32", "batch": 1, "layers": {}}})",
        layers);
  };
  EXPECT_EQ(refusal([&] { trace_from_json(document("[]"), "m.json"); }),
            "m.json: layers: no layer has parameters");
  EXPECT_EQ(refusal([&] {
              trace_from_json(
                  document(R"([{"name": "a", "elements": 1, "forward": 0, "backward": 0}])"),
                  "m.json");
            }),
            "m.json: all times of the trace are zero");
  EXPECT_EQ(
      refusal([&] {
        trace_from_json(
            document(R"([{"name": "a", "elements": 1, "forward": 1e308, "backward": 1e308}])"),
            "m.json");
      }),
      "m.json: sum of all times: inf s is not a time");
}

TEST(Trace, ValidateSeesWhatCodeMayBuildWrong) {
  const auto invalid = [](const Layer& layer) {
    Trace trace;
    trace.layers = {layer};
    return refusal([&] { validate(trace, "m"); });
  };
  EXPECT_EQ(invalid({"a", 1, Seconds(-1), Seconds(1)}), "m: layers[0].forward: -1 s is not a time");
  EXPECT_THAT(invalid({"a", 1, Seconds(1), Seconds(std::numeric_limits<double>::quiet_NaN())}),
              HasSubstr("layers[0].backward: nan s"));
  EXPECT_THAT(invalid({"a", 0, Seconds(1), Seconds(1)}), HasSubstr("layers[0].elements: 0"));
  EXPECT_EQ(invalid({"a", 6, Seconds(1), Seconds(1), {0, 4}}),
            "m: layers[0].shape: 0 must be at least 1");
  EXPECT_EQ(invalid({"a", 6, Seconds(1), Seconds(1), {2, 4}}),
            "m: layers[0].shape: 2 x 4 has more elements than the layer, 6");
  Trace larger;  // than its matrix
  larger.layers = {{"a", 8, Seconds(1), Seconds(1), {2, 3}}};
  EXPECT_NO_THROW(validate(larger, "m"));
}

}  // namespace
}  // namespace riffle
