// The published traces give the published figures, to the printed digit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "riffle/import.h"
#include "riffle/simulate.h"

namespace riffle {
namespace {

const std::filesystem::path kTraces = std::filesystem::path(RIFFLE_SHARED_DIR) / "data/traces";

#define RIFFLE_NEED_SHARED_DATA() \
  if (!std::filesystem::exists(kTraces)) GTEST_SKIP() << "no published measurements at " << kTraces

Simulation run(const Trace& trace, const LinearCost& cost, int workers, const char* strategy) {
  Cluster cluster;
  cluster.workers.resize(static_cast<std::size_t>(workers));
  cluster.fit = cost;
  return simulate(trace, cluster, StrategyTable::builtin().make(strategy));
}

struct Row {
  int workers;
  const char* wfbp;
  const char* single;
  const char* paper;
  int paper_groups;
  const char* optimal;
  int optimal_groups;
};

// Speed-ups over one worker, GoogLeNet on K80 with a ring over 10 GbE.
const Row kGoogLeNet[] = {
    {4, "3.99", "2.52", "3.99", 10, "3.99", 10},
    {8, "6.85", "4.75", "7.74", 6, "7.75", 6},
    {16, "11.71", "9.22", "14.62", 6, "14.63", 6},
    {32, "18.91", "18.13", "27.11", 5, "28.14", 5},
    {64, "27.76", "35.83", "40.81", 2, "53.50", 5},
    {128, "36.41", "70.67", "74.47", 2, "99.93", 4},
    {256, "43.2", "138.2", "138.2", 1, "185.9", 3},
    {512, "47.7", "265.5", "265.5", 1, "327.3", 3},
    {1024, "50.3", "492.4", "492.4", 1, "553.0", 2},
    {2048, "51.7", "860.1", "860.1", 1, "882.3", 2},
};

LinearCost googlenet_ring(int n) {
  const double alpha = 45.25e-6;
  const double beta = 9.6 / (9.0 * (1 << 30));
  const double gamma = 2.5e-9;
  const double share = (n - 1.0) / n;
  return {Seconds(2 * n * alpha), {2 * share * beta + share * gamma}};
}

TEST(Papers, GoogLeNetTable) {
  RIFFLE_NEED_SHARED_DATA();
  const Trace trace = load_trace_file(kTraces / "googlenet-k80/tmp8comm.log");
  for (const Row& row : kGoogLeNet) {
    SCOPED_TRACE(testing::Message() << row.workers << " workers");
    const auto result = [&](const char* strategy) {
      return run(trace, googlenet_ring(row.workers), row.workers, strategy);
    };
    const auto shown = [&](const Simulation& simulation) {
      return row.workers < 256 ? fmt::format("{:.2f}", simulation.speedup)
                               : fmt::format("{:.1f}", simulation.speedup);
    };
    EXPECT_EQ(shown(result("wfbp")), row.wfbp);
    EXPECT_EQ(shown(result("single")), row.single);
    const Simulation paper = result("mg-wfbp:merge=paper");
    EXPECT_EQ(shown(paper), row.paper);
    EXPECT_EQ(paper.buckets.size(), row.paper_groups);
    const Simulation optimal = result("mg-wfbp");
    EXPECT_EQ(shown(optimal), row.optimal);
    EXPECT_EQ(optimal.buckets.size(), row.optimal_groups);
  }
}

struct PipeDreamRow {
  const char* model;
  const char* paper;  // milliseconds
  const char* optimal;
};

// 64 workers on 10 GbE: a = 7.04 ms, b = 0.964 ns.
TEST(Papers, PipeDreamTraces) {
  RIFFLE_NEED_SHARED_DATA();
  const LinearCost cost{milliseconds(7.04), {9.64e-10}};
  const auto milliseconds_of = [](const Simulation& simulation) {
    return fmt::format("{:.1f}", simulation.iteration.count() * 1e3);
  };
  for (const PipeDreamRow& row : {PipeDreamRow{"resnet50", "454.2", "450.5"},
                                  {"densenet121", "364.0", "333.3"},
                                  {"resnet101", "589.9", "418.3"}}) {
    const Trace trace = load_trace_file(kTraces / fmt::format("pipedream/{}.graph.txt", row.model));
    EXPECT_EQ(milliseconds_of(run(trace, cost, 64, "mg-wfbp:merge=paper")), row.paper) << row.model;
    EXPECT_EQ(milliseconds_of(run(trace, cost, 64, "mg-wfbp")), row.optimal) << row.model;
  }
  for (const char* model : {"vgg16", "inception_v3"}) {
    const Trace trace = load_trace_file(kTraces / fmt::format("pipedream/{}.graph.txt", model));
    EXPECT_EQ(milliseconds_of(run(trace, cost, 64, "mg-wfbp:merge=paper")),
              milliseconds_of(run(trace, cost, 64, "mg-wfbp")))
        << model;
  }
}

// At 16 workers the published rule is as good as the optimum on all of them.
TEST(Papers, TheRuleIsOptimalAt16Workers) {
  RIFFLE_NEED_SHARED_DATA();
  for (const LinearCost& cost :
       {LinearCost{Seconds(9.08e-4), {7.40e-10}}, LinearCost{Seconds(2.36e-4), {4.06e-10}}})
    for (const char* model : {"resnet50", "densenet121", "resnet101", "vgg16", "inception_v3"}) {
      const Trace trace = load_trace_file(kTraces / fmt::format("pipedream/{}.graph.txt", model));
      const Simulation paper = run(trace, cost, 16, "mg-wfbp:merge=paper");
      const Simulation optimal = run(trace, cost, 16, "mg-wfbp");
      EXPECT_NEAR(paper.iteration / optimal.iteration, 1, 5e-4) << model;
    }
}

}  // namespace
}  // namespace riffle
