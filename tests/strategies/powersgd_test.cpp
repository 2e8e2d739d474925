#include <gtest/gtest.h>

#include "riffle/error.h"
#include "strategies/example.h"
#include "strategies/traffic.h"
#include "support/programs.h"

namespace riffle::test {
namespace {

TEST(PowerSgd, FactorsTravelOneAfterTheOtherFromItsStartOn) {
  const World world = flat(2);
  const NamedStrategy strategy = make("powersgd:rank=2,start=3");
  const BucketPlan plan = bucket_per_layer(example_trace());
  EXPECT_EQ(strategy->traits(world).warm_up, 3);
  for (Step step = 0; step < 3; ++step)
    EXPECT_EQ(strategy->program(step, world, plan), make("wfbp")->program(step, world, plan));
  const Program program = strategy->program(3, world, plan);
  ASSERT_EQ(program.exchanges.size(), 2 * plan.size());
  const std::string same =
      "bucket 0 gradient all_reduce {0 1}, bucket_ready -> before_step, replace, ";
  EXPECT_EQ(print(program.exchanges[0]), same + "left factor of rank 2");
  EXPECT_EQ(print(program.exchanges[1]), same + "right factor of rank 2");
}

TEST(PowerSgd, WhatHasNoMatrixTravelsWhole) {
  const World world = flat(4);
  const Trace vectors = trace();  // without shapes
  const NamedStrategy strategy = make("powersgd:start=0");
  const BucketPlan plan = bucket_per_layer(vectors);
  EXPECT_EQ(strategy->program(5, world, plan), make("wfbp")->program(5, world, plan));
}

TEST(PowerSgd, BytesAreThoseOfTheFactorsAndOfTheRest) {
  Trace one{.model = "test", .layers = {}, .source = ""};
  one.layers.push_back({"conv", 64 * 3 * 49 + 64, milliseconds(1), milliseconds(1), {64, 3, 7, 7}});
  one.layers.push_back({"small", 30, milliseconds(1), milliseconds(1), {5, 6}});
  const Bucket bucket = one_bucket(one).front();
  const auto bytes = [&](LowRank::Factor factor, int rank) {
    return exchanged_bytes(bucket, {.low_rank = {factor, rank}}, DType::f32).count / 4;
  };
  EXPECT_EQ(bytes(LowRank::Factor::left, 4), 4 * 64 + 64 + 30);
  EXPECT_EQ(bytes(LowRank::Factor::right, 4), 4 * 147);
  // Of rank 23 factors are more than half of the matrix.
  EXPECT_EQ(bytes(LowRank::Factor::left, 22), 22 * 64 + 64 + 30);
  EXPECT_EQ(bytes(LowRank::Factor::left, 23), 64 * 147 + 64 + 30);
  EXPECT_EQ(bytes(LowRank::Factor::right, 23), 0);
  EXPECT_EQ(exchanged_bytes(bucket, {}, DType::f32), one.bytes());
}

TEST(PowerSgd, LayersAreMergedByTheBytesOfTheirFactors) {
  const Trace example = example_trace();
  const auto buckets_on = [&](const std::string& cluster) {
    return buckets(make("powersgd"), World(parse_cluster(cluster)), example).size();
  };
  EXPECT_EQ(buckets_on("flat:16,latency=50us,bandwidth=1Gbps"), 4U);
  EXPECT_EQ(buckets_on("flat:16,latency=50ms,bandwidth=1Gbps"), 1U);
  const World world = racks("4x4");
  EXPECT_LT(sent_per_step(make("powersgd:algorithm=ring"), world, example).bytes,
            0.01 * sent_per_step(make("mg-wfbp:algorithm=ring"), world, example).bytes);
}

TEST(PowerSgd, BadOptions) {
  for (const char* bad : {"rank=0", "rank=-1", "rank=1.5", "start=-1", "wire=int8",
                          "feedback=false", "feedback=true", "tau=4"})
    EXPECT_THROW(make(std::string("powersgd:") + bad), UsageError) << bad;
}

}  // namespace
}  // namespace riffle::test
