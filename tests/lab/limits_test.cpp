// What a machine cannot emulate is refused, with the dilation that would work.
#include "lab/limits.h"

#include <gtest/gtest.h>

#include "riffle/error.h"

namespace riffle::lab {
namespace {

TEST(Limits, NameADilationThatWorks) {
  const Machine machine{2};
  for (const char* spec :
       {"flat:16,latency=50us,bandwidth=10Gbps", "flat:4,latency=10ms,bandwidth=10Gbps",
        "racks:4x4,inner=20us/1Gbps,outer=200us/1Gbps", "flat:64,latency=100us,bandwidth=1Gbps"}) {
    const Cluster cluster = parse_cluster(spec);
    try {
      refuse_what_cannot_be(cluster, 1, 1, machine);
      ADD_FAILURE() << spec << " was not refused";
    } catch (const UsageError& error) {
      const std::string text = error.what();
      const double named = std::stod(text.substr(text.find("--dilate ") + 9));
      EXPECT_EQ(named, least_dilation(cluster, 1, machine)) << text;
      EXPECT_NO_THROW(refuse_what_cannot_be(cluster, named, 1, machine)) << text;
      EXPECT_THROW(refuse_what_cannot_be(cluster, named / 2, 1, machine), UsageError) << text;
    }
  }
  EXPECT_NO_THROW(
      refuse_what_cannot_be(parse_cluster("flat:4,latency=2ms,bandwidth=200Mbps"), 1, 1, machine));
  EXPECT_THROW(refuse_what_cannot_be(parse_cluster("fit:4,a=1ms,b=1ns"), 100, 1, machine),
               UsageError);
  // Nothing times anything is still nothing.
  try {
    refuse_what_cannot_be(parse_cluster("flat:2,latency=0ms,bandwidth=1Gbps"), 1, 1, machine);
    ADD_FAILURE() << "was not refused";
  } catch (const UsageError& error) {
    EXPECT_EQ(std::string(error.what()).find("would work"), std::string::npos) << error.what();
  }
  // Shrunk messages need less.
  const Cluster wide = parse_cluster("flat:4,latency=10ms,bandwidth=10Gbps");
  EXPECT_LT(least_dilation(wide, 8, machine), least_dilation(wide, 1, machine));
}

// What holds at the start may be asked too much of later, and only as long as it lasts.
TEST(Limits, HoldForWhatEventsMakeOfACluster) {
  const Cluster cluster = parse_cluster("flat:4,latency=2ms,bandwidth=200Mbps");
  const auto refused = [&](const std::string& events) {
    try {
      refuse_what_cannot_be(cluster, 1, 1, Machine{2}, parse_changes(events, "test"));
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused("at=1s,link=worker1,bandwidth=50Mbps; at=2s,link=worker*,latency=20ms"), "");
  const std::string wide = refused("at=1s,link=worker*,bandwidth=20Gbps");
  EXPECT_NE(wide.find("event at=1s,link=worker*,bandwidth=20Gbps asks for"), std::string::npos)
      << wide;
  EXPECT_NE(wide.find("--dilate 10 would work"), std::string::npos) << wide;
  // One is not too much; four are.
  EXPECT_EQ(refused("at=1s,link=worker0,bandwidth=4Gbps; at=2s,link=worker0,bandwidth=1Gbps;"
                    "at=3s,link=worker1,bandwidth=4Gbps"),
            "");
  EXPECT_NE(refused("at=2s,link=worker0,bandwidth=6Gbps; at=1s,link=worker1,bandwidth=6Gbps"), "");
  EXPECT_NE(refused("at=1s,link=worker*,latency=100us"), "");
}

}  // namespace
}  // namespace riffle::lab
