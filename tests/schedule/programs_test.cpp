// The programs of strategies as everybody reads them.
#include "support/programs.h"

#include <gtest/gtest.h>

#include "riffle/error.h"
#include "schedule/schedule.h"

namespace riffle::schedule {
namespace {

const World kRacks = test::racks("2x3");

std::vector<Program> programs(const std::string& spec, const World& world = kRacks) {
  const NamedStrategy strategy = test::make(spec);
  return programs_of(*strategy.strategy, world, test::buckets(strategy, world));
}

// What a worker needs, as a word for each thing: "gradients lanes=1 ready".
std::string words(const Needs& needs) {
  std::string text;
  const auto add = [&](bool is, const char* word) {
    if (is) text += (text.empty() ? "" : " ") + std::string(word);
  };
  add(needs.gradients, "gradients");
  add(needs.weights, "weights");
  add(needs.buffers, "buffers");
  add(needs.state, "state");
  add(needs.outer, "outer");
  add(needs.agrees, "agrees");
  add(needs.forward, "forward");
  add(needs.ready, "ready");
  add(needs.per_bucket, "per_bucket");
  add(needs.postpones, "postpones");
  return text + " lanes=" + std::to_string(needs.lanes);
}

TEST(Needs, OfBuiltInStrategies) {
  const std::vector<std::pair<std::string, std::string>> expected{
      {"bsp", "gradients ready lanes=1"},
      {"single", "gradients ready lanes=1"},
      {"wfbp", "gradients ready lanes=1"},
      {"ddp", "gradients ready lanes=1"},
      {"mg-wfbp", "gradients ready lanes=1"},
      {"asc-wfbp", "gradients ready lanes=2"},
      {"hierarchical", "gradients ready lanes=1"},
      {"dear", "gradients forward ready postpones lanes=1"},
      {"sesgd", "weights forward per_bucket lanes=1"},
      {"sesgd:mix_state=true", "weights state forward per_bucket lanes=1"},
      {"sesgd:schedule=random", "weights forward per_bucket lanes=1"},
      {"ds-sync:pattern=bottleneck,delay=2", "weights forward ready per_bucket lanes=2"},
      {"diloco", "weights outer agrees forward lanes=1"},
      {"diloco:fragments=2,overlap=3", "weights outer agrees lanes=1"},
      {"slowmo:mix_state=true", "weights state outer agrees forward lanes=1"},
      {"noloco", "weights outer forward lanes=1"},
      {"local-sgd", "weights forward lanes=1"},
  };
  for (const auto& [spec, needs] : expected)
    EXPECT_EQ(words(needs_of(programs(spec))), needs) << spec;
}

TEST(Needs, ArisenFromGroupsOfMoreThanOne) {
  EXPECT_EQ(words(needs_of(programs("dear", test::flat(1)))), " lanes=0");
  EXPECT_EQ(words(needs_of(programs("sesgd", test::flat(1)))), " lanes=0");
}

TEST(Needs, NameTheExchangeThatCannotBeRun) {
  auto rounded = programs("sesgd");
  for (Exchange& exchange : rounded.front().exchanges) {
    exchange.payload = Payload::buffers;
    exchange.wire = Wire::bf16;
  }
  try {
    (void)needs_of(rounded);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("use wire=f32"), std::string::npos) << error.what();
  }
}

TEST(Needs, OfWhatIsRounded) {
  EXPECT_TRUE(needs_of(programs("wfbp:wire=int8")).rounds_gradients);
  EXPECT_FALSE(needs_of(programs("wfbp:wire=int8")).rounds_weights);
  EXPECT_TRUE(needs_of(programs("local-sgd:wire=bf16")).one_reference);
  EXPECT_TRUE(needs_of(programs("ds-sync:wire=f16")).rounds_weights);
  EXPECT_FALSE(needs_of(programs("ds-sync:wire=f16")).one_reference);
  EXPECT_FALSE(needs_of(programs("local-sgd")).rounds_weights);
  // What an outer optimizer agreed on is a reference where all share it.
  EXPECT_FALSE(needs_of(programs("diloco:wire=int8")).keeps_reference);
  EXPECT_FALSE(needs_of(programs("diloco:fragments=4,overlap=2,wire=int8")).keeps_reference);
  EXPECT_TRUE(needs_of(programs("noloco:wire=int8")).keeps_reference);
  EXPECT_FALSE(needs_of(programs("noloco:wire=int8")).one_reference);
}

TEST(Programs, OfAPeriodOrOfAFewDraws) {
  EXPECT_EQ(programs("bsp").size(), 1U);
  EXPECT_EQ(programs("local-sgd:tau=5").size(), 5U);
  EXPECT_EQ(programs("sesgd:schedule=random").size(), 8U);
  EXPECT_EQ(programs("noloco:tau=5").size(), 40U);  // of whole rounds
}

TEST(Programs, BuffersTravelBesideTheWeightsOfTheirBucket) {
  const NamedStrategy strategy = test::make("diloco:tau=1");
  BucketPlan buckets = bucket_per_layer(test::trace(2));
  EXPECT_EQ(program_of(*strategy.strategy, 0, kRacks, buckets),
            strategy->program(0, kRacks, buckets));
  buckets[1].buffers = Bytes{64};
  const Program plain = strategy->program(0, kRacks, buckets);
  const Program whole = program_of(*strategy.strategy, 0, kRacks, buckets);
  // The strategy's own, in their order, and behind those of bucket 1 its buffers.
  Program own;
  int with_buffers = 0;
  for (std::size_t i = 0; i < whole.exchanges.size(); ++i) {
    const Exchange& exchange = whole.exchanges[i];
    if (exchange.payload != Payload::buffers) {
      own.add(exchange);
      continue;
    }
    ++with_buffers;
    const Exchange& weights = whole.exchanges[i - 1];
    EXPECT_EQ(exchange.bucket, 1);
    EXPECT_EQ(weights.payload, Payload::weight);
    EXPECT_EQ(exchange.group, weights.group);
    EXPECT_EQ(exchange.start, weights.start);
    EXPECT_EQ(exchange.due, weights.due);
    EXPECT_EQ(exchange.merge, replace());  // no outer optimizer for statistics
  }
  EXPECT_EQ(own, plain);
  EXPECT_EQ(with_buffers, 1);
}

TEST(Programs, BuffersKeepTheLocalShareOfALateOuterStep) {
  const NamedStrategy strategy = test::make("diloco:tau=3,overlap=2,xi=0.3");
  BucketPlan buckets = one_bucket(test::trace(2));
  buckets[0].buffers = Bytes{64};
  const Program whole = program_of(*strategy.strategy, 2, kRacks, buckets);
  ASSERT_EQ(whole.exchanges.size(), 2U);
  EXPECT_EQ(whole.exchanges[1].payload, Payload::buffers);
  EXPECT_EQ(whole.exchanges[1].merge, mix(0.3));
  EXPECT_EQ(whole.exchanges[1].due, after_step(2));
}

TEST(Programs, BuffersAreCorrectedOnceHoweverWeightsAreScaled) {
  const NamedStrategy strategy = test::make("ds-sync:pattern=bottleneck,delay=2");
  BucketPlan buckets = one_bucket(test::trace(2));
  buckets[0].buffers = Bytes{64};
  int scaled = 0;  // the delegates' weights, by the workers they stand for
  int corrected = 0;
  for (const Program& program : programs_of(*strategy.strategy, kRacks, buckets))
    for (const Exchange& exchange : program.exchanges) {
      if (exchange.merge.kind != Merge::Kind::correct) continue;
      if (exchange.payload == Payload::weight) scaled += exchange.merge.scale == 3 ? 1 : 0;
      if (exchange.payload != Payload::buffers) continue;
      EXPECT_EQ(exchange.merge, correct());
      EXPECT_TRUE(exchange.scales.empty());
      ++corrected;
    }
  EXPECT_GT(scaled, 0);
  EXPECT_EQ(corrected, scaled);
}

TEST(WithoutPostponing, GradientsAreCompleteBeforeTheUpdateInTheSameOrder) {
  const Program dear = test::program("dear:bucket=1MiB", 0, kRacks);
  const Program eager = without_postponing(dear);
  ASSERT_EQ(eager.exchanges.size(), dear.exchanges.size());
  for (std::size_t i = 0; i < dear.exchanges.size(); ++i) {
    const Exchange& before = dear.exchanges[i];
    const Exchange& after = eager.exchanges[i];
    EXPECT_FALSE(postpones(after));
    EXPECT_EQ(after.bucket, before.bucket);
    EXPECT_EQ(after.collective, before.collective);
    EXPECT_EQ(after.due, before_step());
    EXPECT_EQ(after.start, before.collective == Collective::all_gather ? Start::backward_done
                                                                       : Start::bucket_ready);
  }
  const Program weights = test::program("sesgd", 0, kRacks);
  EXPECT_EQ(without_postponing(weights), weights);
}

}  // namespace
}  // namespace riffle::schedule
