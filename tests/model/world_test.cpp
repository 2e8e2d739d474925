#include "riffle/world.h"

#include <gmock/gmock.h>

#include "refusal.h"

namespace riffle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kRacks = "racks:2x2,inner=1us/1Gbps,outer=1ms/1Mbps";

TEST(Group, IsAscendingAndComparedByValue) {
  const Group group{3, 1, 2};
  EXPECT_THAT(group.ranks(), ElementsAre(1, 2, 3));
  EXPECT_EQ(group, (Group{1, 2, 3}));
  EXPECT_EQ(group.index_of(3), 2);
  EXPECT_EQ(group.index_of(0), -1);
  EXPECT_TRUE(group.contains(1));
  EXPECT_EQ(print(group), "{1 2 3}");
  const Group copy = group;
  EXPECT_EQ(copy.identity(), group.identity());
  EXPECT_EQ(refusal([] { Group{1, 2, 1}; }), "group: rank 1 occurs twice");
}

TEST(World, RacksLeaveOutTheDead) {
  const Cluster cluster = parse_cluster(kRacks);
  EXPECT_EQ(print(World(cluster).racks()), "{0 1} {2 3}");
  EXPECT_EQ(print(World(cluster, {1, Group{0, 1, 3}}).racks()), "{0 1} {3}");
  EXPECT_EQ(print(World(cluster, {2, Group{2, 3}}).racks()), "{2 3}");
  EXPECT_EQ(print(World(parse_cluster("fit:3,a=1ms,b=1ns")).racks()), "{0 1 2}");
}

TEST(World, TheDeadCannotBeAllNorStrangersAlive) {
  const Cluster cluster = parse_cluster(kRacks);
  EXPECT_EQ(refusal([&] { World(cluster, {0, Group{}}); }), "world: no rank is alive");
  EXPECT_EQ(refusal([&] { World(cluster, {0, Group{1, 4}}); }),
            "world: ranks 1 to 4 are not in a cluster of 4 workers");
  EXPECT_THAT(refusal([&] { World(cluster, {0, Group{-1, 2}}); }), HasSubstr("-1"));
}

TEST(Partition, CoversTheWorldOnce) {
  const Group world{0, 1, 2, 5};
  EXPECT_NO_THROW(validate({Group{0, 5}, Group{1, 2}}, world));
  EXPECT_EQ(refusal([&] { validate({Group{0, 5}, Group{1}}, world); }),
            "partition: rank 2 is in no group");
  EXPECT_EQ(refusal([&] { validate({Group{0, 5}, Group{1, 2, 5}}, world); }),
            "partition: rank 5 is in two groups");
  EXPECT_EQ(refusal([&] { validate({Group{0, 1, 2, 3, 5}}, world); }),
            "partition: rank 3 is not in the world");
  EXPECT_EQ(refusal([&] { validate({world, Group{}}, world); }), "partition: a group is empty");
}

TEST(World, BadJsonNamesTheField) {
  const auto read = [](std::string_view ranks, std::string_view epoch = "0",
                       std::string_view spec = kRacks) {
    return refusal([&] {
      world_from_json(
          fmt::format(R"({{"riffle": "world", "version": 1, "epoch": {}, "ranks": {}, )"
                      R"("cluster": {{"riffle": "cluster", "version": 1, "spec": "{}"}}}})",
                      epoch, ranks, spec),
          "w.json");
    });
  };
  EXPECT_EQ(read("[0, 4]"), "w.json: ranks[1]: '4': must be from 0 to 3");
  EXPECT_EQ(read("[1, 1]"), "w.json: ranks: group: rank 1 occurs twice");
  EXPECT_EQ(read("[]"), "w.json: ranks: 'array': no rank is alive");
  EXPECT_EQ(read("[0]", "-1"), "w.json: epoch: '-1': must be from 0 to 9007199254740992");
  EXPECT_THAT(read("[0]", "0", "flat:0,latency=1us,bandwidth=1Gbps"),
              HasSubstr("w.json: cluster: spec: cluster 'flat:0"));
  EXPECT_EQ(refusal([] {
              world_from_json(R"({"riffle": "world", "version": 1, "epoch": 0, "ranks": [0]})",
                              "w");
            }),
            "w: field \"cluster\" is missing");
}

}  // namespace
}  // namespace riffle
