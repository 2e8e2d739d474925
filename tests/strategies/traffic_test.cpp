// What the programs of strategies add up to is what their papers say.
#include "strategies/traffic.h"

#include <gtest/gtest.h>

#include <set>

#include "riffle/error.h"
#include "strategies/formula.h"

namespace riffle {
namespace {

TEST(Traffic, CountsAreThePublishedFormulas) {
  int compared = 0;
  for (const TrafficRow& row : traffic_rows(StrategyTable::builtin())) {
    if (!row.expected) continue;
    ++compared;
    EXPECT_NEAR(row.counted.bytes, row.expected->bytes, 1e-9) << row.strategy;
    EXPECT_NEAR(row.counted.messages, row.expected->messages, 1e-9) << row.strategy;
  }
  EXPECT_GE(compared, 17);  // no formula of today's gets lost
}

TEST(Traffic, EveryStrategyHasARow) {
  const StrategyTable table = StrategyTable::builtin();
  std::set<std::string> named;
  for (const TrafficRow& row : traffic_rows(table))
    named.insert(row.strategy.substr(0, row.strategy.find(':')));
  for (const StrategyInfo& info : table.all()) EXPECT_TRUE(named.contains(info.name)) << info.name;
}

TEST(Traffic, AWrongFormulaShows) {
  StrategyInfo info = StrategyTable::builtin().info("wfbp");
  info.traffic = {{.options = "algorithm=ring", .bytes = "2(N-1)/R", .messages = "2(N-1)*B"}};
  StrategyTable table;
  info.options.clear();
  table.add(info);
  const TrafficRow row = traffic_rows(table).front();
  EXPECT_DOUBLE_EQ(row.expected->bytes, 7.5);
  EXPECT_DOUBLE_EQ(row.counted.bytes, 1.875);
}

TEST(Formula, IsReadAsPapersWriteIt) {
  const FormulaNames names{{"N", 16}, {"R", 4}, {"tau", 8}};
  EXPECT_DOUBLE_EQ(evaluate("1", names), 1);
  EXPECT_DOUBLE_EQ(evaluate("2(N-1)/N", names), 1.875);
  EXPECT_DOUBLE_EQ(evaluate("2(N-1)/N/tau", names), 1.875 / 8);
  EXPECT_DOUBLE_EQ(evaluate("(N + 2)(R-1)", names), 54);
  EXPECT_DOUBLE_EQ(evaluate("N - R - 1 + 2*log2 R", names), 15);
  EXPECT_DOUBLE_EQ(evaluate("log2(N/R)*0.5", names), 1);
}

TEST(Formula, WhatItCannotReadIsNamed) {
  const FormulaNames names{{"N", 16}};
  for (const char* wrong : {"", "2(N-1", "M", "N N", "N+", "N)", "2 # N", "*N"})
    EXPECT_THROW(evaluate(wrong, names), UsageError) << wrong;
}

}  // namespace
}  // namespace riffle
