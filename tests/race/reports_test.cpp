// Lines of ranks, however they are torn.
#include "race/reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "refusal.h"
#include "riffle/random.h"
#include "temporary_folder.h"

namespace riffle::race {
namespace {

using testing::HasSubstr;

const std::string lines =
    R"({"step": 1, "seconds": 0.5, "exposed": 0.125, "loss": 2.5}
{"step": 2, "seconds": 1.0, "later": "what"}
{"evaluated": 2, "seconds": 1.0, "accuracy": 0.75}
{"end": "target", "steps": 2, "seconds": 1.0, "timeline": "a.json"}
)";

void expect_all(const RankReport& report) {
  ASSERT_EQ(report.steps().size(), 2U);
  EXPECT_EQ(report.steps()[0].exposed, 0.125);
  EXPECT_EQ(report.steps()[0].loss, 2.5);
  EXPECT_EQ(report.steps()[1].loss, std::nullopt);
  EXPECT_EQ(report.steps()[1].seconds, 1.0);
  ASSERT_EQ(report.evaluations().size(), 1U);
  EXPECT_EQ(report.evaluations()[0], (Evaluation{2, 1.0, 0.75}));
  ASSERT_TRUE(report.end());
  EXPECT_EQ(report.end()->why, "target");
  EXPECT_EQ(report.end()->timeline, "a.json");
}

TEST(RankReport, IsTheSameHoweverLinesAreTorn) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed, 0);
    RankReport report;
    for (std::size_t at = 0; at < lines.size();) {
      const std::size_t size = 1 + random.below(40);
      report.feed(std::string_view(lines).substr(at, size), "rank0.jsonl");
      at += size;
    }
    expect_all(report);
  }
}

TEST(RankReport, ATornLastLineIsNoLineYet) {
  RankReport report;
  report.feed(R"({"step": 1, "seconds": 0.5}
{"step": 2, "sec)",
              "rank0.jsonl");
  EXPECT_EQ(report.steps().size(), 1U);
}

TEST(RankReport, RefusesOtherLinesByTheirNumberAndKeepsTheRest) {
  RankReport report;
  const std::string told = refusal([&] {
    report.feed(
        "{\"step\": 1, \"seconds\": 1}\n{\"stop\": 2}\nnonsense\n"
        "{\"step\": 2, \"seconds\": 2}\n",
        "rank3.jsonl");
  });
  EXPECT_THAT(told, HasSubstr("rank3.jsonl: line 2"));
  EXPECT_EQ(report.steps().size(), 2U);
  EXPECT_THAT(refusal([&] { report.feed("{\"step\": 3, \"seconds\": -1}\n", "rank3.jsonl"); }),
              HasSubstr("seconds"));
}

TEST(Reports, AreReadAsFilesGrow) {
  const TemporaryFolder folder;
  Reports reports(folder.path(), 2);
  EXPECT_FALSE(reports.read());
  EXPECT_FALSE(reports.begun());
  std::ofstream first(folder / "rank0.jsonl");
  std::ofstream second(folder / "rank1.jsonl");
  first << "{\"step\": 1, \"seconds\": 1}\n{\"step\": 2, \"sec" << std::flush;
  EXPECT_TRUE(reports.read());
  EXPECT_TRUE(reports.begun());
  EXPECT_EQ(reports.steps(), 0);
  first << "onds\": 2}\n" << std::flush;
  second << "{\"step\": 1, \"seconds\": 1}\n" << std::flush;
  EXPECT_TRUE(reports.read());
  EXPECT_FALSE(reports.read());
  EXPECT_EQ(reports.steps(), 1);
  EXPECT_EQ(reports.ranks()[0].steps().size(), 2U);
}

}  // namespace
}  // namespace riffle::race
