// The importers on small texts whose answers are known by hand, and one real torch profile.
#include "riffle/import.h"

#include <gmock/gmock.h>

#include "base/files.h"
#include "model/import/formats.h"
#include "refusal.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string real_torch_profile() {
  return read_file(RIFFLE_SOURCE_DIR "/tests/model/data/torch_profile.json");
}

constexpr std::string_view kGraph =
    "node10 -- ReLU(inplace) -- forward_compute_time=0.5, backward_compute_time=0.25, "
    "activation_size=8.000, parameter_size=0.000\n"
    "node2 -- Conv2d(3, 8, kernel_size=(3, 3)) -- forward_compute_time=4.0, "
    "backward_compute_time=8.0, activation_size=[8.0; 8.0], parameter_size=896.000\n"
    "node11 -- Linear(8, 2) -- forward_compute_time=1.0, backward_compute_time=2.0, "
    "activation_size=8.0, parameter_size=72.000 -- stage_id=0\n"
    "node1 -- Input -- forward_compute_time=9.5, backward_compute_time=0.000, "
    "activation_size=1204224.000, parameter_size=0.000\n"
    "\tnode1 -- node2\n\tnode2 -- node10\n\tnode10 -- node11\n";

constexpr std::string_view kCaffe =
    "I0101 00:00:00.000001 7 distributed.cpp:112] [0, 100, 0, 0, 0]\n"
    "I0101 00:00:00.000002 7 solver.cpp:50] Iteration 4, loss = 2.5\n"
    "I0101 00:00:00.000003 7 distributed.cpp:112] [2, 50, 300.25, 1071]\r\n"
    "I0101 00:00:00.000004 7 distributed.cpp:112] [0, 100, 1500.5, 1169, 0]\n"
    "I0101 00:00:00.000005 7 distributed.cpp:112] [1, 10, 1500.5, 0, 0]\n";

TEST(Recognize, LooksAtTheTextOnly) {
  EXPECT_EQ(recognize(kGraph), TraceFormat::pipedream);
  EXPECT_EQ(recognize(kCaffe), TraceFormat::caffe);
  EXPECT_EQ(recognize("[0, 100, 1500.5, 1169, 0]"), TraceFormat::caffe);
  EXPECT_EQ(recognize(real_torch_profile()), TraceFormat::torch_profiler);
  EXPECT_EQ(recognize(" [ {\"ph\": \"X\"}]"), TraceFormat::torch_profiler);
  EXPECT_EQ(recognize("\n {\"version\": 1, \"riffle\" : \"trace\"}"), TraceFormat::riffle);
  // A name is no key.
  EXPECT_EQ(recognize(R"({"traceEvents": [{"name": "riffle"}]})"), TraceFormat::torch_profiler);
  for (const char* text : {"", " ", "{}", "[]", "node", "hello", "[1, 2]", "{\"a\": [1, 2, 3, 4]}"})
    EXPECT_EQ(recognize(text), TraceFormat::unknown) << text;
}

TEST(Recognize, WhatNobodyReadsIsAnsweredWithTheFormats) {
  EXPECT_EQ(refusal([] { import_trace("hello", "a.txt"); }),
            "a.txt: 'hello' is in no known format; supported: riffle trace JSON, torch.profiler "
            "Chrome JSON, PipeDream graph, B-Caffe log");
  EXPECT_THAT(refusal([] { import_trace("", "a.txt"); }), HasSubstr("an empty file"));
  EXPECT_THAT(refusal([] { import_trace("\x1f\x8b\x08", "a.json.gz"); }), HasSubstr("gunzip"));
  std::string garbage;
  for (int i = 0; i < 10'000; ++i) garbage += static_cast<char>(i * 7919 % 256);
  EXPECT_THAT(refusal([&] { import_trace(garbage, "a.bin"); }), HasSubstr("in no known format"));
}

TEST(Import, TheModelIsNamedAfterTheFile) {
  EXPECT_EQ(model::model_name("runs.d/resnet50.graph.txt"), "resnet50");
  EXPECT_EQ(model::model_name("squeezenet1_0.graph.txt"), "squeezenet1_0");
  EXPECT_EQ(model::model_name(".hidden"), ".hidden");
  EXPECT_EQ(model::model_name("folder/"), "unnamed");
  EXPECT_EQ(model::model_name("a\nb\xff.log"), "a?b\xef\xbf\xbd");
}

TEST(Pipedream, RunsInTheOrderOfNodesWithoutInputs) {
  const Trace trace = import_trace(kGraph, "tiny.graph.txt");
  EXPECT_EQ(trace.model, "tiny");
  EXPECT_EQ(trace.batch, 2);
  EXPECT_EQ(trace.source, "measured: PipeDream profile");
  ASSERT_EQ(trace.layers.size(), 2U);
  EXPECT_EQ(trace.layers[0].name, "node2:Conv2d");
  EXPECT_EQ(trace.layers[0].elements, 224);
  EXPECT_DOUBLE_EQ(trace.layers[0].forward.count(), 4e-3);
  EXPECT_DOUBLE_EQ(trace.layers[0].backward.count(), 8.25e-3);  // with node10
  EXPECT_EQ(trace.layers[1].name, "node11:Linear");
  EXPECT_EQ(trace.layers[1].elements, 18);
  EXPECT_DOUBLE_EQ(trace.layers[1].forward.count(), 1.5e-3);  // with node10
}

TEST(Pipedream, ABatchThatTheInputDoesNotTellIsSaid) {
  std::string text(kGraph);
  text.replace(text.find("1204224.000"), 11, "1204225.000");
  const Trace trace = import_trace(text, "tiny.graph.txt");
  EXPECT_EQ(trace.batch, 1);
  EXPECT_EQ(trace.source, "measured: PipeDream profile; batch not known");
}

TEST(Pipedream, BadLinesAreNamed) {
  const auto with = [](std::string_view from, std::string_view to) {
    std::string text(kGraph);
    text.replace(text.find(from), from.size(), to);
    return refusal([&] { import_trace(text, "g.txt"); });
  };
  EXPECT_EQ(with("backward_compute_time=8.0", "backward_compute_time=-8.0"),
            "g.txt: line 2: backward_compute_time: -8 is negative");
  EXPECT_EQ(with("forward_compute_time=4.0", "forward_compute_time=4.0ms"),
            "g.txt: line 2: forward_compute_time: '4.0ms' is not a number");
  EXPECT_EQ(with("forward_compute_time=4.0", "forward_compute_time=nan"),
            "g.txt: line 2: forward_compute_time: 'nan' is not a number");
  EXPECT_EQ(with("parameter_size=896.000", "parameter_size=897.000"),
            "g.txt: line 2: parameter_size: 897 is not a whole number of 4-byte floats");
  EXPECT_EQ(with(", parameter_size=896.000", ""), "g.txt: line 2: field parameter_size is missing");
  EXPECT_EQ(with("node11 -- L", "node2 -- L"), "g.txt: node2 occurs twice");
  EXPECT_EQ(with("node11 -- L", "nodeX -- L"), "g.txt: line 3: node: 'X' is not a whole number");
  EXPECT_THAT(with("\tnode1 -- node2", "what -- is this"), StartsWith("g.txt: line 5: 'what"));
}

TEST(Caffe, WeightAndBiasAreOneLayerAndTheLastLineCounts) {
  const Trace trace = import_trace(kCaffe, "tmp8comm.log");
  EXPECT_EQ(trace.model, "tmp8comm");
  ASSERT_EQ(trace.layers.size(), 2U);
  EXPECT_EQ(trace.layers[0].elements, 110);
  EXPECT_DOUBLE_EQ(trace.layers[0].backward.count(), 1500.5e-6);
  EXPECT_DOUBLE_EQ(trace.layers[0].forward.count(), 750.25e-6);
  EXPECT_EQ(trace.layers[1].elements, 50);
  EXPECT_THAT(trace.source, HasSubstr("half of backward"));
}

TEST(Caffe, BadLinesAreNamed) {
  const auto refused = [](std::string_view line) {
    return refusal([&] { import_trace(std::string(kCaffe) + std::string(line), "c.log"); });
  };
  EXPECT_EQ(refused("[4, -5, 1.0, 2]"), "c.log: line 6: elements: -5 must be from 0 to 2^53");
  EXPECT_EQ(refused("[4, 5, -1.0, 2]"), "c.log: line 6: backward microseconds: -1 is negative");
  EXPECT_EQ(refused("[4, 5, nan, 2]"),
            "c.log: line 6: backward microseconds: 'nan' is not a number");
  EXPECT_EQ(refused("[-4, 5, 1, 2]"), "c.log: line 6: index: -4 is negative");
  EXPECT_EQ(refused("[4.5, 5, 1, 2]"), "c.log: line 6: index: '4.5' is not a whole number");
  EXPECT_EQ(refusal([] { import_trace("[0, 0, 1, 2]", "c.log"); }),
            "c.log: layers: no layer has parameters");
}

// Recorded with torch 2.13 by make_torch_profile.py: two steps of a CNN of 52154 parameters. The
// times were computed from the file by another program.
TEST(TorchProfiler, ReadsARealProfile) {
  const Trace trace = import_trace(real_torch_profile(), "torch_profile.json");
  EXPECT_EQ(trace.model, "torch_profile");
  EXPECT_EQ(trace.dtype, DType::f32);
  EXPECT_EQ(trace.batch, 32);
  EXPECT_EQ(trace.parameters(), 72 + 8 + 16 + 1152 + 16 + 64 * 784 + 64 + 640 + 10);
  EXPECT_NEAR(trace.backward().count(), 12329.036e-6, 1e-8);
  EXPECT_NEAR(trace.forward().count(), 10385.542e-6, 1e-8);
  EXPECT_NEAR(trace.optimizer_step.count(), 454.417e-6, 1e-8);
  std::vector<std::string> names;
  for (const Layer& layer : trace.layers) names.push_back(layer.name);
  EXPECT_THAT(names, testing::ElementsAre("tensor0:8", "tensor1:8x1x3x3", "tensor2:8", "tensor3:8",
                                          "tensor4:16", "tensor5:16x8x3x3", "tensor6:64x784",
                                          "tensor7:64", "tensor8:10x64", "tensor9:10"));
  EXPECT_NEAR(trace.layers[5].backward.count(), 9128.046e-6, 1e-8);
  EXPECT_NEAR(trace.layers[9].backward.count(), 141.604e-6, 1e-8);
  EXPECT_NEAR(trace.layers[5].forward / trace.forward(), 9128.046 / 12329.036, 1e-6);
  EXPECT_THAT(trace.source, HasSubstr("last complete step; forward divided like backward"));
}

TEST(TorchProfiler, AProfileWithoutShapesSaysHowToRecordThem) {
  std::string text = real_torch_profile();
  for (std::size_t at = text.find("Input Dims"); at != std::string::npos;
       at = text.find("Input Dims", at))
    text.replace(at, 10, "Other");
  EXPECT_THAT(refusal([&] { import_trace(text, "p.json"); }),
              HasSubstr("record the profile with record_shapes=True"));
  EXPECT_THAT(refusal([] { import_trace(R"({"traceEvents": []})", "p.json"); }),
              HasSubstr("p.json: traceEvents: no torch::autograd::AccumulateGrad; profile whole"));
}

// Builds a profile event by event; times in microseconds.
class Profile {
 public:
  Profile& op(std::string_view name, double start, double end, int sequence = -1,
              std::string_view dims = "", std::string_view type = "float") {
    std::string args = fmt::format("\"Sequence number\": {}", sequence);
    if (!dims.empty())
      args += fmt::format(", \"Input Dims\": [{}], \"Input type\": [\"{}\"]", dims, type);
    return add("cpu_op", name, start, end, args);
  }
  Profile& function(std::string_view name, double start, double end, int sequence) {
    return op(fmt::format("autograd::engine::evaluate_function: {}", name), start, end, sequence);
  }
  Profile& gradient(double start, double end, std::string_view dims,
                    std::string_view type = "float") {
    return op("torch::autograd::AccumulateGrad", start, end, -1, dims, type);
  }
  Profile& kernel(double launched, double start, double end) {
    ++kernels_;
    const std::string args = fmt::format("\"correlation\": {}", kernels_);
    return add("cuda_runtime", "cudaLaunchKernel", launched, launched + 1, args)
        .add("kernel", "gemm", start, end, args);
  }
  Profile& add(std::string_view category, std::string_view name, double start, double end,
               std::string_view args) {
    events_ += fmt::format(
        "{}{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": 1, \"tid\": 1, \"ts\": {}, "
        "\"dur\": {}, \"args\": {{{}}}}}",
        events_.empty() ? "" : ",\n", category, name, start, end - start, args);
    return *this;
  }
  [[nodiscard]] Trace import() const { return import_trace(text(), "p.json"); }
  [[nodiscard]] std::string text() const { return "{\"traceEvents\": [" + events_ + "]}"; }

 private:
  std::string events_;
  int kernels_ = 0;
};

// Two steps, the first twice as slow; loss.item() before the second has its first node's number.
Profile two_steps() {
  return Profile()
      .op("aten::linear", 100, 300, 7, "[32, 4]")
      .function("AddmmBackward0", 300, 340, 7)
      .gradient(350, 360, "[4]")
      .gradient(370, 400, "[4, 4]")
      .add("user_annotation", "Optimizer.step#SGD.step", 400, 440, "")
      .op("aten::item", 450, 451, 9)
      .op("aten::linear", 500, 600, 9, "[32, 4]")
      .op("aten::t", 510, 520, 9, "[4, 4]")
      .function("AddmmBackward0", 600, 620, 9)
      .gradient(625, 630, "[4]")
      .gradient(635, 650, "[4, 4]")
      .add("user_annotation", "Optimizer.step#SGD.step", 650, 670, "");
}

TEST(TorchProfiler, UsesTheLastStep) {
  const Trace trace = two_steps().import();
  EXPECT_EQ(trace.batch, 32);
  ASSERT_EQ(trace.layers.size(), 2U);
  EXPECT_EQ(trace.layers[0].name, "tensor0:4x4");
  EXPECT_NEAR(trace.layers[0].backward.count(), 20e-6, 1e-12);  // ready at 650, after 630
  EXPECT_NEAR(trace.layers[1].backward.count(), 30e-6, 1e-12);  // ready at 630, backward from 600
  EXPECT_NEAR(trace.layers[0].forward.count(), 40e-6, 1e-12);   // of 100, divided 20 to 30
  EXPECT_NEAR(trace.layers[1].forward.count(), 60e-6, 1e-12);
  EXPECT_NEAR(trace.optimizer_step.count(), 20e-6, 1e-12);
}

TEST(TorchProfiler, AStepCutOffAtTheEndDoesNotCount) {
  const Trace trace = two_steps()
                          .op("aten::linear", 700, 800, 11, "[32, 4]")
                          .function("AddmmBackward0", 800, 820, 11)
                          .gradient(825, 830, "[4]")
                          .import();
  EXPECT_NEAR(trace.backward().count(), 50e-6, 1e-12);
}

TEST(TorchProfiler, AForwardCutOffAtTheStartIsRefused) {
  const Profile profile =
      Profile().function("AddmmBackward0", 300, 340, 7).gradient(350, 360, "[4]");
  EXPECT_EQ(refusal([&] { (void)profile.import(); }),
            "p.json: traceEvents: no step with its forward pass; profile whole training steps");
}

// Kernels run behind the CPU: a gradient is there when what was launched before it is done.
TEST(TorchProfiler, ReadyOnADeviceMeansLaunchedWorkIsDone) {
  const Trace trace = Profile()
                          .op("aten::linear", 100, 110, 7, "[32, 4]")
                          .kernel(105, 120, 300)  // forward
                          .function("AddmmBackward0", 111, 120, 7)
                          .kernel(112, 300, 350)  // the bias
                          .gradient(121, 122, "[4]")
                          .kernel(123, 350, 500)  // the weight
                          .gradient(124, 125, "[4, 4]")
                          .import();
  ASSERT_EQ(trace.layers.size(), 2U);
  EXPECT_NEAR(trace.forward().count(), 200e-6, 1e-12);           // 100 to 300
  EXPECT_NEAR(trace.layers[1].backward.count(), 50e-6, 1e-12);   // 300 to 350
  EXPECT_NEAR(trace.layers[0].backward.count(), 150e-6, 1e-12);  // 350 to 500
}

TEST(TorchProfiler, RecomputationInsideBackwardIsNoNewStep) {
  const Trace trace = Profile()
                          .op("CheckpointFunction", 100, 200, 7, "[32, 4]")
                          .function("CheckpointFunctionBackward", 200, 300, 7)
                          .op("aten::linear", 210, 240, 20, "[32, 4]")
                          .function("AddmmBackward0", 240, 260, 20)
                          .gradient(270, 280, "[4]")
                          .gradient(281, 290, "[4, 4]")
                          .import();
  EXPECT_EQ(trace.layers.size(), 2U);
  EXPECT_NEAR(trace.forward().count(), 100e-6, 1e-12);
  EXPECT_NEAR(trace.backward().count(), 90e-6, 1e-12);
}

TEST(TorchProfiler, TypesOfGradients) {
  const auto typed = [](std::string_view first, std::string_view second) {
    return Profile()
        .op("aten::linear", 100, 300, 7, "[32, 4]")
        .function("AddmmBackward0", 300, 340, 7)
        .gradient(350, 360, "[4]", first)
        .gradient(370, 400, "[4, 4]", second);
  };
  EXPECT_EQ(typed("c10::BFloat16", "c10::BFloat16").import().dtype, DType::bf16);
  EXPECT_EQ(typed("c10::Half", "float").import().dtype, DType::f32);
  EXPECT_THAT(refusal([&] { (void)typed("long int", "float").import(); }),
              HasSubstr("p.json: traceEvents[2]: Input type: 'long int' is no type of a gradient"));
}

TEST(TorchProfiler, BadEventsAreNamed) {
  const auto with = [](std::string_view from, std::string_view to) {
    std::string text = two_steps().text();
    text.replace(text.find(from), from.size(), to);
    return refusal([&] { import_trace(text, "p.json"); });
  };
  EXPECT_EQ(with("\"ts\": 300", "\"ts\": -300"),
            "p.json: traceEvents[1]: ts: '-300': must be at least 0");
  EXPECT_EQ(with("\"dur\": 200", "\"dur\": \"long\""),
            "p.json: traceEvents[0]: dur: '\"long\"': expected a number");
  EXPECT_EQ(with("\"ts\": 100,", ""), "p.json: traceEvents[0]: field \"ts\" is missing");
  EXPECT_EQ(with("[4, 4]", "[-4, 4]"),
            "p.json: traceEvents[3]: args: Input Dims[0][0]: '-4': must be from 0 to "
            "9007199254740992");
  const std::string text = two_steps().text();
  EXPECT_THAT(refusal([&] { import_trace(text.substr(0, text.size() / 2), "p.json"); }),
              HasSubstr("p.json: not valid JSON"));
}

TEST(Osu, ReadsAllSpellings) {
  const auto points = import_osu(
      "\n# OSU MPI Allreduce Latency Test v5.4.0\n# Size  Avg Latency(us)\n4     54.50\n"
      "8,8\t68.72\r\n16 1.5 1.4 1.6 1000\n",
      "a.log");
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0], (MeasuredPoint{Bytes{4}, microseconds(54.5)}));
  EXPECT_EQ(points[1], (MeasuredPoint{Bytes{8}, microseconds(68.72)}));
  EXPECT_EQ(points[2], (MeasuredPoint{Bytes{16}, microseconds(1.5)}));
}

TEST(Osu, BadLinesAreNamed) {
  const auto refused = [](std::string_view text) {
    return refusal([&] { import_osu(text, "a.log"); });
  };
  EXPECT_EQ(refused("# nothing\n"), "a.log: no line has 'bytes microseconds'");
  EXPECT_EQ(refused("4 1.0\n8 -1.0\n"), "a.log: line 2: microseconds: -1 must be above zero");
  EXPECT_EQ(refused("0 1.0\n"), "a.log: line 1: bytes: 0 must be from 1 to 2^53");
  EXPECT_EQ(refused("4KB 1.0\n"), "a.log: line 1: bytes: '4KB' is not a whole number");
  EXPECT_EQ(refused("4 inf\n"), "a.log: line 1: microseconds: 'inf' is not a number");
  EXPECT_EQ(refused("4\n"), "a.log: line 1: '4' is not 'bytes microseconds'");
  EXPECT_EQ(refused("1,2,3 4\n"), "a.log: line 1: '1,2,3' is not 'ranks,bytes'");
}

}  // namespace
}  // namespace riffle
