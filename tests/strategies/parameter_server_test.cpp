// asp and ssp: everybody serves a shard.
#include <gtest/gtest.h>

#include "refusal.h"
#include "riffle/error.h"
#include "support/programs.h"

namespace riffle::test {
namespace {

TEST(Asp, ServesEveryBucketInEveryStep) {
  for (const Step step : {0, 1, 17})
    EXPECT_EQ(print(program("asp:bucket=single", step, flat(4)).exchanges.front()),
              "bucket 0 weight serve {0 1 2 3}, bucket_stepped -> before_forward +1, replace");
  EXPECT_EQ(program("asp:bucket=layer", 0, flat(4)).exchanges.size(), 3U);
}

TEST(Ssp, BoundsHowFarAheadAWorkerIs) {
  EXPECT_EQ(print(program("ssp:staleness=3,bucket=single", 5, flat(2)).exchanges.front()),
            "bucket 0 weight serve (3 ahead at most) {0 1}, bucket_stepped -> before_forward +1, "
            "replace");
  EXPECT_EQ(program("ssp", 0, flat(2)).exchanges.front().ahead, 4);
}

TEST(ParameterServer, SaysWhatDependsOnClocks) {
  EXPECT_TRUE(make("asp")->traits(flat(2)).timed);
  EXPECT_EQ(make("asp")->traits(flat(2)).staleness, 0);
  EXPECT_FALSE(make("asp")->traits(flat(1)).timed);
  EXPECT_TRUE(make("ssp:staleness=3")->traits(flat(2)).timed);
  EXPECT_EQ(make("ssp:staleness=3")->traits(flat(2)).staleness, 3);
  EXPECT_FALSE(make("ssp:staleness=0")->traits(flat(2)).timed);
  for (const char* spec : {"bsp", "gossip", "diloco", "ds-sync"})
    EXPECT_FALSE(make(spec)->traits(flat(4)).timed) << spec;
}

TEST(ParameterServer, BadOptions) {
  EXPECT_THROW(make("ssp:staleness=-1"), UsageError);
  EXPECT_THROW(make("asp:staleness=1"), UsageError);
  EXPECT_EQ(refusal([] { make("asp:wire=bf16"); }),
            "strategy asp: wire: what is served travels as it is; use wire=f32");
  EXPECT_THROW(make("ssp:algorithm=ring"), UsageError);
  EXPECT_NO_THROW(make("ssp:algorithm=direct"));
}

}  // namespace
}  // namespace riffle::test
