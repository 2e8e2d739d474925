// The grammar of events, which simulate, lab and race share.
#include "riffle/change.h"

#include <gtest/gtest.h>

#include "riffle/error.h"

namespace riffle {
namespace {

TEST(Change, IsPrintedAsItIsParsed) {
  for (const std::string text :
       {"at=2s,link=rack1,bandwidth=100Mbps", "at=3s,link=rack1,cut", "at=4s,link=rack1,repair",
        "at=5s,worker=3,slow=4", "at=0s,link=worker*,jitter=2ms,loss=1%",
        "at=1ms,link=site0/rack2,latency=20ms,load=300Mbps", "at=1s,link=rack0,load=0"}) {
    const auto changes = parse_changes(text, "test");
    ASSERT_EQ(changes.size(), 1U) << text;
    EXPECT_EQ(parse_changes(print(changes[0]), "test"), changes) << print(changes[0]);
  }
  EXPECT_EQ(parse_changes("at=1s,link=rack0,loss=1%; at=2s,worker=0,slow=2", "test").size(), 2U);
}

TEST(Change, NamesLinksByDomainWorkerOrBeginning) {
  const Cluster cluster =
      parse_cluster("sites:2x2x3,inner=1ms/1Gbps,outer=1ms/1Gbps,wan=9ms/1Gbps");
  const auto count = [&](const std::string& name) {
    return links_of(parse_changes("at=0s,cut,link=" + name, "test")[0], cluster).size();
  };
  EXPECT_EQ(count("*"), 12U + 4 + 2);
  EXPECT_EQ(count("worker*"), 12U);
  EXPECT_EQ(count("worker1*"), 3U);  // 1, 10, 11
  EXPECT_EQ(count("site1*"), 3U);
  EXPECT_EQ(count("site1/rack0"), 1U);
  const LinkId rack = links_of(parse_changes("at=0s,cut,link=site1/rack0", "test")[0], cluster)[0];
  EXPECT_TRUE(rack.uplink);
  EXPECT_EQ(name_of(cluster, rack), "site1/rack0");
  for (const std::string name : {"root", "worker12", "rack0", "workers*"})
    EXPECT_THROW(count(name), UsageError) << name;
}

TEST(Change, KnowsNoWorkerBeyondNumbers) {
  for (const std::string rank : {"-1", "4294967296", "4294967299"})
    EXPECT_THROW(parse_changes("at=1s,slow=2,worker=" + rank, "test"), UsageError) << rank;
}

TEST(Change, SaysWhichLinksThereAre) {
  const auto said = [](const char* spec) -> std::string {
    try {
      links_of(parse_changes("at=0s,cut,link=rack9", "test")[0], parse_cluster(spec));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_TRUE(said("racks:2x2,inner=1ms/1Gbps,outer=1ms/1Gbps")
                  .ends_with("known: rack0, rack1, worker0 to worker3"));
  EXPECT_TRUE(said("flat:1,latency=1ms,bandwidth=1Gbps").ends_with("known: worker0"));
}

// What was measured pair by pair does not follow links.
TEST(Change, IsRefusedWhereMeasuredPairsWouldNotFollow) {
  Cluster cluster = parse_cluster("racks:2x2,inner=1ms/1Gbps,outer=1ms/1Gbps");
  cluster.pairs.push_back({.from = 0, .to = 1, .link = {milliseconds(3), {1e6}}});
  const auto refused = [&](const std::string& link) {
    try {
      links_of(parse_changes("at=0s,cut,link=" + link, "test")[0], cluster);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refused("worker1").find("from worker 0 to worker 1"), std::string::npos);
  EXPECT_NE(refused("worker*"), "");
  EXPECT_EQ(refused("worker2"), "");
  EXPECT_EQ(refused("rack0"), "") << "both are in it";
  cluster.pairs[0].to = 3;
  EXPECT_NE(refused("rack0"), "");
}

}  // namespace
}  // namespace riffle
