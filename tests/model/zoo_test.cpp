#include "riffle/zoo.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/files.h"
#include "base/text.h"
#include "model/zoo/models.h"
#include "riffle/error.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::map<std::string, BuiltinModel> models() {
  std::map<std::string, BuiltinModel> by_name;
  for (const BuiltinModel& model : builtin_models()) by_name[model.name] = model;
  return by_name;
}

TEST(Zoo, ParameterTotalsAreThePublishedOnes) {
  const std::map<std::string, std::int64_t> published{
      {"resnet50", 25557032},    {"resnet152", 60192808},   {"vgg16", 138357544},
      {"densenet161", 28681000}, {"densenet201", 20013928}, {"inception-v4", 42679816},
      {"bert-base", 109482240},  {"bert-large", 335141888}, {"gpt2", 124439808},
      {"googlenet", 13378280},   {"wrn-26-10", 36481434},   {"deepfm", 12434912},
  };
  std::map<std::string, std::int64_t> ours;
  for (const auto& [name, model] : models()) {
    ours[name] = model.parameters;
    EXPECT_EQ(builtin_trace(name).parameters(), model.parameters) << name;
  }
  EXPECT_EQ(ours, published);
}

// WRN-28-10 of the paper has 36 479 194 parameters for CIFAR-10 and no batch norm on shortcuts.
TEST(Zoo, WideResNetIsThePapersPlusItsShortcutNorms) {
  constexpr std::int64_t shortcuts = 160 + 320 + 640;
  EXPECT_EQ(models()["wrn-26-10"].parameters, 36479194 + 2 * shortcuts);
  std::int64_t formula = 27 * 16 + 2 * 16;
  for (std::int64_t in = 16, width = 160; width <= 640; in = width, width *= 2)
    formula += (9 * in + 9 * width + in + 6) * width  // first block, its shortcut, norms
               + 3 * (18 * width + 4) * width;        // three more, norms
  formula += 640 * 10 + 10;
  EXPECT_EQ(models()["wrn-26-10"].parameters, formula);
}

TEST(Zoo, DeepFmIsEmbeddingsAndAPerceptron) {
  const std::int64_t values = 1086810;
  const std::int64_t hidden = 390 * 400 + 400 + 2 * (400 * 400 + 400) + 3 * 2 * 400 + 401;
  EXPECT_EQ(models()["deepfm"].parameters, values * 10 + values + 1 + hidden);
}

TEST(Zoo, MultiplyAddsAreThePublishedOnes) {
  struct Published {
    std::string what;
    double ours;
    double published;
    double tolerance = 0.03;
  };
  auto ours = models();
  // The published GoogLeNet is without auxiliary heads: a 1x1 convolution on 4x4, two linear.
  const double heads = 16.0 * (512 + 528) * 128 + 2.0 * (2048 * 1024 + 1024 * 1000);
  for (const auto& [what, got, published, tolerance] : {
           Published{"resnet50 (torchvision)", ours["resnet50"].multiply_adds, 4.089e9},
           Published{"resnet152 (torchvision)", ours["resnet152"].multiply_adds, 11.514e9},
           Published{"vgg16 (torchvision)", ours["vgg16"].multiply_adds, 15.47e9},
           Published{"densenet161 (torchvision)", ours["densenet161"].multiply_adds, 7.728e9},
           Published{"densenet201 (torchvision)", ours["densenet201"].multiply_adds, 4.291e9},
           Published{"inception-v4 (timm)", ours["inception-v4"].multiply_adds, 12.3e9},
           // Open Model Zoo, 3.266 GFLOP, counts pooling and local response norm as well.
           Published{"googlenet", ours["googlenet"].multiply_adds - heads, 3.266e9 / 2, 0.04},
           Published{"wrn-26-10 (WRN paper)", ours["wrn-26-10"].multiply_adds, 5.2e9},
           Published{"bert-base at 128 (TinyBERT paper)", zoo::bert_base(128).multiply_adds(),
                     22.5e9 / 2},
           Published{"gpt2 (nanoGPT)", ours["gpt2"].multiply_adds, 291648307200.0 / 2, 1e-9},
       })
    EXPECT_NEAR(got / published, 1, tolerance) << what;
  // 24 layers of width h on n tokens: 12 h^2 n for the weights, 2 n^2 h for attention; the pooler.
  const double h = 1024;
  EXPECT_DOUBLE_EQ(zoo::bert_large(128).multiply_adds(),
                   24 * (12 * h * h * 128 + 2.0 * 128 * 128 * h) + h * h);
}

TEST(Zoo, LayersAreModulesWithParameters) {
  const std::map<std::string, std::size_t> expected{
      {"resnet50", 53 + 53 + 1},        // convolutions, batch norms, linear: 161 tensors
      {"resnet152", 155 + 155 + 1},     // 467 tensors
      {"vgg16", 13 + 3},                //
      {"densenet161", 160 + 161 + 1},   // 2 per dense layer; stem, 3 transitions, last norm
      {"densenet201", 200 + 201 + 1},   //
      {"inception-v4", 149 + 149 + 1},  //
      {"googlenet", 57 + 1 + 2 * 3},    // two auxiliary heads of three
      {"wrn-26-10", 28 + 28 + 1},       //
      {"bert-base", 4 + 12 * 8 + 1},    // 3 embeddings and a norm; 6 linear and 2 norms; pooler
      {"bert-large", 4 + 24 * 8 + 1},   //
      {"gpt2", 2 + 12 * 6 + 1},         // 4 linear and 2 norms; the head is wte
      {"deepfm", 2 + 2 * 3 + 1},        //
  };
  std::map<std::string, std::size_t> ours;
  for (const std::string& name : builtin_traces()) {
    ours[name] = builtin_trace(name).layers.size();
    EXPECT_EQ(models()[name].layers, ours[name]) << name;
  }
  EXPECT_EQ(ours, expected);
}

// The weights of MG-WFBP's published GoogLeNet trace, in order; it pads each tensor to 64 values.
TEST(Zoo, GoogLeNetIsTheOneOfThePublishedTrace) {
  const auto path =
      std::filesystem::path(RIFFLE_SHARED_DIR) / "data/traces/googlenet-k80" / "tmp8comm.log";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  std::vector<std::int64_t> tensors;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t bracket = line.rfind('[');
    if (bracket == std::string::npos) continue;
    const auto fields = split(std::string_view(line).substr(bracket + 1), ',');
    if (fields.size() >= 3) tensors.push_back(parse_integer(trim(fields[1]), path.string()));
  }
  const Trace trace = builtin_trace("googlenet");
  ASSERT_GE(tensors.size(), 2 * trace.layers.size());
  tensors.erase(tensors.begin(), tensors.end() - 2 * std::ssize(trace.layers));
  const auto padded = [](std::int64_t n) { return (n + 63) / 64 * 64; };
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    const std::int64_t bias = trace.layers[i].elements - tensors[2 * i];
    EXPECT_EQ(padded(bias), tensors[2 * i + 1]) << trace.layers[i].name;
  }
}

TEST(Zoo, TracesAreValidAndSurviveJson) {
  for (const std::string& name : builtin_traces())
    for (const Device& device : builtin_devices()) {
      const Trace trace = builtin_trace(name, {.batch = 3, .device = device.name});
      validate(trace, name);
      EXPECT_EQ(trace_from_json(to_json(trace), name), trace);
      EXPECT_EQ(trace.batch, 3);
      EXPECT_THAT(trace.source, HasSubstr("modelled: " + device.title));
    }
  EXPECT_EQ(builtin_trace("resnet50").source, "modelled: V100 fp32, 14 TFLOP/s at 63 %");
  EXPECT_EQ(builtin_trace("resnet50").batch, 64);
}

TEST(Zoo, TheTiedEmbeddingComesFirstAndOnlyOnce) {
  const Trace trace = builtin_trace("gpt2");
  EXPECT_EQ(trace.layers.front().name, "wte");
  EXPECT_EQ(trace.layers.front().elements, 50257 * 768);
  EXPECT_EQ(trace.layers.back().name, "ln_f");
  // The head's products are where backward begins, before any gradient is ready.
  EXPECT_GT(trace.layers.back().backward, 10 * trace.layers.front().backward);
}

TEST(Zoo, BackwardIsTwiceForwardExceptAtTheFirstLayer) {
  const Device device{"d", "test", 1e12, {1e30}, 1, {}};  // memory is free, so is starting
  const auto nodes = zoo::timed(zoo::vgg16(), 2, device);
  for (const TraceNode& node : nodes) {
    if (node.elements == 0) continue;
    const double factor = node.name == "conv1_1" ? 1 : 2;
    EXPECT_NEAR(node.backward / node.forward, factor, 1e-9) << node.name;
  }
  EXPECT_NEAR(nodes.front().forward.count(), 2 * 2 * 27 * 64 * 224.0 * 224 / 1e12, 1e-12);
}

TEST(Zoo, LargerBatchesTakeLongerButStartNoMoreKernels) {
  for (const std::string& name : builtin_traces()) {
    const Seconds one = builtin_trace(name, {.batch = 1, .device = "v100"}).compute();
    const Seconds eight = builtin_trace(name, {.batch = 8, .device = "v100"}).compute();
    EXPECT_GT(eight, one) << name;
    EXPECT_LT(eight, 8 * one) << name;
  }
}

TEST(Zoo, WrongNamesAreAnsweredWithTheRightOnes) {
  EXPECT_THAT([] { builtin_trace("resnet5"); },
              ThrowsMessage<UsageError>(HasSubstr("unknown trace 'resnet5' (nearest: resnet50)")));
  EXPECT_THAT([] { builtin_trace("resnet50", {.batch = {}, .device = "v10"}); },
              ThrowsMessage<UsageError>(HasSubstr("unknown device 'v10' (nearest: v100)")));
  EXPECT_THAT([] { builtin_trace("resnet50", {.batch = 0, .device = "v100"}); },
              ThrowsMessage<UsageError>(HasSubstr("batch: 0 must be from 1")));
  EXPECT_TRUE(std::ranges::is_sorted(builtin_traces()));
}

// ---- the tables of docs/traces.md ----

std::string models_table() {
  std::string text =
      "| trace | configuration | paper | parameters | layers | G multiply-adds | batch | forward | "
      "backward |\n|---|---|---|---:|---:|---:|---:|---:|---:|\n";
  for (const BuiltinModel& model : builtin_models()) {
    const Trace trace = builtin_trace(model.name);
    text += fmt::format("| `{}` | {} | {} | {} | {} | {:.4g} | {} | {} | {} |\n", model.name,
                        model.configuration, model.paper, model.parameters, model.layers,
                        model.multiply_adds / 1e9, model.batch, print(trace.forward()),
                        print(trace.backward()));
  }
  return text;
}

std::string devices_table() {
  std::string text =
      "| device | | peak TFLOP/s | memory GB/s | efficiency | launch |\n"
      "|---|---|---:|---:|---:|---:|\n";
  for (const Device& device : builtin_devices())
    text +=
        fmt::format("| `{}` | {} | {:.4g} | {:.4g} | {:.0f} % | {} |\n", device.name, device.title,
                    device.peak_flops_per_second / 1e12, device.memory.bytes_per_second / 1e9,
                    device.efficiency * 100, print(device.launch));
  return text;
}

struct Measured {
  std::string what;
  zoo::Net net;
  int batch;
  std::string device;
  double seconds;
  bool backward_only = false;
};

std::vector<Measured> measured() {
  return {{"resnet152", zoo::resnet152(), 128, "v100", 0.8831},
          {"inception-v4 at 224x224", zoo::inception_v4(224), 128, "v100", 0.6108},
          {"densenet161", zoo::densenet161(), 64, "v100", 0.4777},
          {"densenet201", zoo::densenet201(), 64, "v100", 0.3609},
          {"resnet50", zoo::resnet50(), 64, "rtx2080ti", 64 / 253.1},
          {"bert-base", zoo::bert_base(64), 64, "rtx2080ti", 64 / 212.8},
          {"bert-large", zoo::bert_large(64), 8, "rtx2080ti", 8 / 49.0},
          {"googlenet, backward", zoo::googlenet(), 64, "k80", 0.2053, true}};
}

double modelled(const Measured& row, const Device& device) {
  Seconds sum{};
  for (const TraceNode& node : zoo::timed(row.net, row.batch, device))
    sum += node.backward + (row.backward_only ? Seconds{} : node.forward);
  return sum.count();
}

std::string measured_table() {
  std::string text =
      "| trace | batch | device | measured | modelled | error |\n|---|---:|---|---:|---:|---:|\n";
  for (const Measured& row : measured()) {
    const double ours = modelled(row, builtin_device(row.device));
    text +=
        fmt::format("| {} | {} | `{}` | {:.1f} ms | {:.1f} ms | {:+.0f} % |\n", row.what, row.batch,
                    row.device, row.seconds * 1e3, ours * 1e3, (ours / row.seconds - 1) * 100);
  }
  return text;
}

TEST(Zoo, TheEfficiencyIsTheBestOneForTheV100Measurements) {
  const std::vector<Measured> rows = measured();
  const auto error = [&](double efficiency) {
    double sum = 0;
    for (const Measured& row : rows) {
      if (row.device != "v100") continue;
      Device device = builtin_device(row.device);
      device.efficiency = efficiency;
      sum += std::abs(std::log(modelled(row, device) / row.seconds));
    }
    return sum;
  };
  int best = 1;
  for (int percent = 1; percent <= 100; ++percent)
    if (error(percent / 100.0) < error(best / 100.0)) best = percent;
  EXPECT_DOUBLE_EQ(builtin_device("v100").efficiency, best / 100.0);
}

// RIFFLE_UPDATE_GOLDEN=1 rewrites the page instead of comparing.
TEST(Zoo, TheTablesOfTheDocumentationAreInStep) {
  const std::filesystem::path path = std::filesystem::path(RIFFLE_SOURCE_DIR) / "docs/traces.md";
  const std::string page = read_file(path);
  std::string renewed = page;
  for (const auto& [name, table] :
       {std::pair{"models", models_table()}, std::pair{"devices", devices_table()},
        std::pair{"measured", measured_table()}}) {
    const std::string begin = fmt::format("<!-- begin: {} -->\n", name);
    const std::size_t from = renewed.find(begin);
    const std::size_t to = renewed.find(fmt::format("<!-- end: {} -->", name));
    ASSERT_TRUE(from != std::string::npos && to != std::string::npos) << name;
    renewed.replace(from + begin.size(), to - from - begin.size(), table);
  }
  if (std::getenv("RIFFLE_UPDATE_GOLDEN") != nullptr)
    write_file(path, renewed);
  else
    EXPECT_EQ(page, renewed) << "run again with RIFFLE_UPDATE_GOLDEN=1";
}

}  // namespace
}  // namespace riffle
