#include "verify/traffic_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "riffle/strategy.h"

namespace riffle {
namespace {

TEST(TrafficTable, CountsAreThePublishedFormulas) {
  for (const TrafficRow& row : traffic_rows()) {
    EXPECT_NEAR(row.bytes_counted, row.bytes_expected, 1e-9) << row.strategy;
    EXPECT_NEAR(row.messages_counted, row.messages_expected, 1e-9) << row.strategy;
  }
}

TEST(TrafficTable, HasEveryStrategy) {
  std::set<std::string> named;
  for (const TrafficRow& row : traffic_rows())
    named.insert(row.strategy.substr(0, row.strategy.find(':')));
  const StrategyTable table = StrategyTable::builtin();
  for (const StrategyInfo& info : table.all()) EXPECT_TRUE(named.contains(info.name)) << info.name;
}

}  // namespace
}  // namespace riffle
