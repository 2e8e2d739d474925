// Contenders by name, how long each runs, what is predicted of them.
#include "race/contender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "race/contest.h"
#include "refusal.h"
#include "riffle/load.h"
#include "riffle/simulate.h"

namespace riffle::race {
namespace {

using testing::HasSubstr;

const StrategyTable table = StrategyTable::builtin();
const Cluster cluster = parse_cluster("flat:4,latency=1ms,bandwidth=1Gbps");

TEST(Contenders, AreStrategiesOrPeers) {
  EXPECT_FALSE(parse_contender("sesgd:group=2", table).peer);
  EXPECT_TRUE(parse_contender("torch-ddp:hook=powersgd", table).peer);
  EXPECT_THAT(refusal([] { parse_contender("wfpb", table); }), HasSubstr("wfbp"));
  EXPECT_THAT(refusal([] { parse_contender("torch-dpd", table); }), HasSubstr("torch-ddp"));
  EXPECT_THAT(refusal([] { parse_contender("sesgd:grp=2", table); }), HasSubstr("grp"));
  EXPECT_THAT(refusal([] { parse_contenders({"wfbp", "wfbp"}, table); }), HasSubstr("twice"));
  EXPECT_EQ(parse_contender("sesgd:group=2,every=2", table).file_name(), "sesgd_group=2_every=2");
}

TEST(Contenders, ArePredictedByTheSimulator) {
  const Trace trace = load_trace("resnet50");
  const auto ours = predict(parse_contender("wfbp", table), trace, cluster, {});
  ASSERT_TRUE(ours);
  EXPECT_DOUBLE_EQ(ours->seconds_per_step,
                   simulate(trace, cluster, table.make("wfbp")).iteration.count());
  // Gloo's ring asks before it sends: every latency twice.
  const Cluster slower = parse_cluster("flat:4,latency=2ms,bandwidth=1Gbps");
  EXPECT_DOUBLE_EQ(
      predict(parse_contender("torch-ddp", table), trace, cluster, {})->seconds_per_step,
      simulate(trace, slower, table.make("ddp:algorithm=ring")).iteration.count());
  EXPECT_FALSE(predict(parse_contender("torch-ddp:hook=powersgd", table), trace, cluster, {}));
}

TEST(Contenders, ShowWhoMeetsWhom) {
  const Trace trace = load_trace("resnet50");
  const auto groups = groups_of(parse_contender("sesgd:group=2", table), trace, cluster);
  ASSERT_TRUE(groups);
  EXPECT_EQ(*groups, (std::vector<Groups>{{{0, 1}, {2, 3}}, {{0, 2}, {1, 3}}}));
  EXPECT_FALSE(groups_of(parse_contender("torch-ddp", table), trace, cluster));
}

TEST(Length, IsWholePeriods) {
  Setting setting;
  setting.steps = 20;
  Traits traits;
  traits.period = 3;
  traits.staleness = 2;
  const Length with_trace = length_of(setting, traits);
  EXPECT_EQ(with_trace.warm_up, 6);  // 2 * 2 + 1, rounded up
  EXPECT_EQ(with_trace.steps, 21);
  traits.rotation = 2;  // alike but for names
  EXPECT_EQ(length_of(setting, traits).period, 2);
  setting.head.task = "digits";
  EXPECT_EQ(length_of(setting, traits).warm_up, 3);
  EXPECT_EQ(length_of(setting, Traits{.period = 0}).period, 1);
}

TEST(Order, TellsWorkersWhatToDo) {
  Setting setting;
  setting.head.topology = cluster;
  setting.head.dilate = 4;
  setting.head.trace = "resnet50";
  setting.times = load_trace("resnet50");
  const Contender contender = parse_contender("dasgd:tau=2", table);
  const Json order =
      parse_json(order_json(setting, contender, {2, 4, 20}, "somewhere"), "order.json");
  EXPECT_EQ(order.at("contender"), "dasgd:tau=2");
  EXPECT_EQ(order.at("trace"), "resnet50");
  EXPECT_TRUE(order.at("task").is_null());
  EXPECT_EQ(order.at("steps"), 20);
  EXPECT_EQ(order.at("warmup"), 4);
  EXPECT_TRUE(order.at("folder").get<std::string>().starts_with("/"));
  setting.head.trace = "";
  setting.head.task = "digits";
  const Json task = parse_json(order_json(setting, contender, {2, 4, 20}, "there"), "order.json");
  EXPECT_TRUE(task.at("trace").is_null());
  EXPECT_NEAR(task.at("compute").at("layers").at(0).at("forward").get<double>(),
              4 * setting.times.layers[0].forward.count(), 1e-12);
}

}  // namespace
}  // namespace riffle::race
