// The importers on measurements published by others, against totals computed independently.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "base/files.h"
#include "model/import/formats.h"
#include "riffle/import.h"

namespace riffle {
namespace {

const std::filesystem::path kTraces = RIFFLE_SHARED_DIR "/data/traces";

class Published : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kTraces))
      GTEST_SKIP() << "no published traces beside the repository";
  }
};

// Totals are rounded to their last digit.
constexpr double kRounding = 0.05 + 1e-9;

struct Totals {
  const char* model;
  int layers;
  double parameters;  // millions
  double forward;     // milliseconds, data loading included
  double backward;
  int batch;
};

TEST_F(Published, PipedreamGraphsAddUpToTheirTotals) {
  const std::vector<Totals> all{
      {"alexnet", 8, 61.1, 680.7, 40.5, 256},          {"vgg16", 16, 138.4, 251.9, 438.6, 128},
      {"resnet18", 41, 11.7, 581.1, 152.3, 256},       {"resnet50", 107, 25.56, 201.5, 260.9, 128},
      {"resnet101", 209, 44.55, 207.7, 213.8, 64},     {"densenet121", 242, 7.98, 186.5, 148.8, 64},
      {"inception_v3", 194, 27.16, 311.0, 399.8, 128}, {"gnmt", 11, 193.8, 33.5, 55.9, 1},
      {"gnmt_large", 19, 277.7, 182.6, 337.9, 1},
  };
  for (const Totals& expected : all) {
    SCOPED_TRACE(expected.model);
    const auto path = kTraces / "pipedream" / fmt::format("{}.graph.txt", expected.model);
    const Trace trace = load_trace_file(path);
    Seconds loading{};
    for (const model::PipedreamNode& node : model::read_pipedream(read_file(path), "graph"))
      if (node.is_input()) loading += node.forward;
    EXPECT_EQ(trace.model, expected.model);
    EXPECT_EQ(trace.layers.size(), expected.layers);
    EXPECT_EQ(trace.batch, expected.batch);
    EXPECT_NEAR(static_cast<double>(trace.parameters()) / 1e6, expected.parameters, kRounding);
    EXPECT_NEAR((trace.forward() + loading).count() * 1e3, expected.forward, kRounding);
    EXPECT_NEAR(trace.backward().count() * 1e3, expected.backward, kRounding);
  }
}

TEST_F(Published, ResNet50WithoutDataLoading) {
  const Trace trace = load_trace_file(kTraces / "pipedream/resnet50.graph.txt");
  EXPECT_EQ(trace.parameters(), 25'557'032);
  EXPECT_NEAR(trace.compute().count() * 1e3, 443.4, kRounding);
}

TEST_F(Published, EveryGraphReads) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kTraces / "pipedream")) {
    const Trace trace = load_trace_file(entry.path());
    EXPECT_EQ(trace_from_json(to_json(trace), "again"), trace) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 11);
}

TEST_F(Published, GoogLeNetOnK80) {
  const Trace trace = load_trace_file(kTraces / "googlenet-k80/tmp8comm.log");
  EXPECT_EQ(trace.layers.size(), 64U);
  EXPECT_EQ(trace.parameters(), 13'379'136);
  EXPECT_NEAR(trace.backward().count() * 1e3, 205.3, kRounding);
  EXPECT_NEAR(trace.forward() / trace.backward(), 0.5, 1e-12);
}

TEST_F(Published, OsuLogsHave266Sizes) {
  for (const int workers : {2, 4, 8}) {
    const auto points =
        load_osu_file(kTraces / fmt::format("googlenet-k80/allreduce{}.log", workers));
    EXPECT_EQ(points.size(), 266U) << workers;
    EXPECT_EQ(points.front().size, Bytes{4});
    EXPECT_EQ(points.back().size, mebibytes(1));
  }
  const auto eight = load_osu_file(kTraces / "googlenet-k80/allreduce8.log");
  EXPECT_EQ(eight.back().time, microseconds(4678.91));
}

}  // namespace
}  // namespace riffle
