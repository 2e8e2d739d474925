#include "riffle/cost.h"

#include <gmock/gmock.h>

#include <cmath>

#include "model/slowed_down.h"
#include "pattern/pattern.h"
#include "riffle/error.h"
#include "riffle/random.h"

namespace riffle {
namespace {

const Algorithm kWithMessages[] = {Algorithm::ring, Algorithm::halving_doubling,
                                   Algorithm::recursive_doubling, Algorithm::direct};

// What the table says, counted from the messages themselves.
ClosedForm count(const pattern::Pattern& pattern) {
  ClosedForm form;
  double most_reduced = 0;
  std::vector<double> reduced(pattern.members());
  for (int round = 0; round < pattern.rounds(); ++round) {
    double busiest = 0;
    int idle = 0;
    for (int member = 0; member < pattern.members(); ++member) {
      std::vector<pattern::Message> messages;
      pattern.sends(member, round, messages);
      double sent = 0;
      for (const pattern::Message& message : messages) {
        const double share = static_cast<double>(message.count) / pattern.blocks();
        sent += share;
        if (message.add) reduced[message.to] += share;
        form.messages_sent += 1.0 / pattern.members();
        form.bytes_sent += share / pattern.members();
      }
      busiest = std::max(busiest, sent);
      if (messages.empty()) pattern.receives(member, round, messages);
      if (messages.empty()) ++idle;
    }
    form.latencies += 1;
    form.bytes += busiest;
    // Members with nothing to do in the first round go ahead and share links with it.
    if (round == 0 && idle > 0) form.bytes += busiest;
  }
  for (const double each : reduced) most_reduced = std::max(most_reduced, each);
  form.reduced = most_reduced;
  return form;
}

TEST(ClosedForm, EqualsItsMessagePattern) {
  for (const Algorithm algorithm : kWithMessages)
    for (const Collective collective :
         {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather})
      for (int n = 1; n <= 33; ++n) {
        const ClosedForm table = closed_form(algorithm, collective, n);
        const ClosedForm counted = count(*pattern::make_pattern(algorithm, collective, n));
        SCOPED_TRACE(testing::Message()
                     << name_of(algorithm) << " " << name_of(collective) << " over " << n);
        EXPECT_DOUBLE_EQ(table.latencies, counted.latencies);
        EXPECT_NEAR(table.bytes, counted.bytes, 1e-12);
        EXPECT_NEAR(table.reduced, counted.reduced, 1e-12);
        EXPECT_NEAR(table.messages_sent, counted.messages_sent, 1e-9);
        EXPECT_NEAR(table.bytes_sent, counted.bytes_sent, 1e-9);
      }
}

// The table of the MG-WFBP paper, for a power of two.
TEST(ClosedForm, ThePublishedTable) {
  const int n = 16;
  const Cluster cluster = parse_cluster("flat:16,latency=50us,bandwidth=10Gbps,gamma=0.5ns");
  const double alpha = 50e-6;
  const double beta = 1 / 1.25e9;
  const double gamma = 0.5e-9;
  const CostModel cost(cluster);
  const Group all = World(cluster).ranks();
  const auto line = [&](Algorithm algorithm) {
    return cost.curve(all, Collective::all_reduce, algorithm).pieces().front().cost;
  };
  const auto expect = [&](Algorithm algorithm, double a, double b) {
    EXPECT_NEAR(line(algorithm).a.count(), a, 1e-15) << name_of(algorithm);
    EXPECT_NEAR(line(algorithm).b.value, b, 1e-22) << name_of(algorithm);
  };
  expect(Algorithm::recursive_doubling, alpha * 4, (beta + gamma) * 4);
  expect(Algorithm::halving_doubling, 2 * alpha * 4, 2 * beta - (2 * beta + gamma) / n + gamma);
  expect(Algorithm::tree, 2 * alpha * 4, 2 * beta + gamma);
  expect(Algorithm::ring, 2 * (n - 1) * alpha, 2.0 * (n - 1) / n * beta + (n - 1.0) / n * gamma);
}

TEST(CostModel, AutoIsTheCheapestAtEverySize) {
  Random random(3);
  for (int run = 0; run < 50; ++run) {
    const int n = 2 + static_cast<int>(random.below(20));
    Cluster cluster = parse_cluster(fmt::format("flat:{},latency=50us,bandwidth=10Gbps", n));
    cluster.gamma = {random.uniform(0, 1e-9)};
    const CostModel cost(cluster);
    const Group all = World(cluster).ranks();
    for (int k = 0; k < 40; ++k) {
      const Bytes size{static_cast<std::int64_t>(std::exp(random.uniform(0, 20)))};
      Seconds best(1e9);
      for (const Algorithm algorithm : kWithMessages)
        if (algorithm != Algorithm::direct || n <= kLargestDirect)
          best = std::min(best, cost.curve(all, Collective::all_reduce, algorithm)(size));
      EXPECT_NEAR(cost.curve(all)(size).count(), best.count(), 1e-12 * best.count());
    }
  }
}

TEST(CostModel, DirectTakesTwoLatenciesUpToEight) {
  const CostModel cost(parse_cluster("flat:9,latency=1ms,bandwidth=10Gbps"));
  EXPECT_NEAR(cost.curve(Group{0, 1, 2, 3, 4, 5, 6, 7})(Bytes{0}).count(), 2e-3, 1e-12);
  EXPECT_EQ(cost.algorithm({.group = Group{0, 1, 2, 3, 4, 5, 6, 7}}, kibibytes(64)),
            Algorithm::direct);
  EXPECT_EQ(cost.algorithm({.group = World(cost.cluster()).ranks()}, mebibytes(64)),
            Algorithm::halving_doubling);
}

TEST(CostModel, TwoLevelSendsTheModelAcrossTheUplinkOnce) {
  const CostModel cost(parse_cluster("racks:4x4,inner=1us/100Gbps,outer=1us/1Gbps"));
  const Group all = World(cost.cluster()).ranks();
  const LinearCost two =
      cost.curve(all, Collective::all_reduce, Algorithm::two_level).pieces().front().cost;
  // 2(R-1)/R of the model over 1 Gbit/s, plus what the racks add inside.
  const double across = 2 * 3.0 / 4 / 125e6;
  const double inside = 2 * 3.0 / 4 / 12.5e9;
  EXPECT_NEAR(two.b.value, across + inside, 1e-15);
  // A ring in rank order has one flow per uplink but passes 2(N-1)/N over it.
  const LinearCost ring =
      cost.curve(all, Collective::all_reduce, Algorithm::ring).pieces().front().cost;
  EXPECT_NEAR(ring.b.value, 2 * 15.0 / 16 / 125e6, 1e-15);
  EXPECT_EQ(cost.algorithm({.group = all}, mebibytes(100)), Algorithm::two_level);
}

// One segment costs its rounds, the next what its bytes take on the link that all rounds load most.
TEST(CostModel, TwoLevelPiecesFollowEachOther) {
  const Cluster cluster = parse_cluster("racks:2x4,inner=1ms/1Gbps,outer=2ms/500Mbps");
  const CostModel cost(cluster);
  const Group all = World(cluster).ranks();
  const Curve& curve = cost.curve(all, Collective::all_reduce, Algorithm::two_level);
  // Two rounds inside (1 ms each) and two across (3 ms each); the largest message is a quarter.
  EXPECT_NEAR(curve(Bytes{0}).count(), 8e-3, 1e-12);
  const double rounds = 2 * 0.75 / 125e6 + 1 / 62.5e6;
  EXPECT_NEAR(curve(mebibytes(1)).count(), 8e-3 + 1048576 * rounds, 1e-9);
  const Seconds more = curve(mebibytes(51)) - curve(mebibytes(1));
  EXPECT_NEAR(more.count(), 50 * 1048576 / 62.5e6, 1e-6);
  // Emulated with a sixteenth of the bytes everything stays as it is, pieces too.
  const CostModel shrunk(model::slowed_down(cluster, 1, 16));
  EXPECT_NEAR(shrunk.curve(all, Collective::all_reduce, Algorithm::two_level)(mebibytes(2)).count(),
              curve(mebibytes(32)).count(), 1e-9);
}

TEST(CostModel, AFitRefusesGroups) {
  const CostModel cost(parse_cluster("fit:64,a=7.04ms,b=0.964ns"));
  EXPECT_NEAR(cost.curve(World(cost.cluster()).ranks())(Bytes{1'000'000}).count(), 8.004e-3, 1e-9);
  EXPECT_THAT([&] { (void)cost.curve(Group{0, 1}); },
              testing::ThrowsMessage<UsageError>(testing::HasSubstr("not groups")));
}

TEST(CostModel, AGroupOfOneIsFree) {
  const CostModel cost(parse_cluster("flat:4,latency=1ms,bandwidth=1Gbps"));
  EXPECT_EQ(cost.time({.group = Group{2}}, mebibytes(1)).count(), 0);
  EXPECT_EQ(cost.traffic({.group = Group{2}}, mebibytes(1)).bytes, 0);
}

TEST(Curve, TakesThePieceOfTheSize) {
  const Curve curve({{Bytes{0}, {Seconds(1), {0}}}, {Bytes{100}, {Seconds(5), {1}}}});
  EXPECT_EQ(curve(Bytes{99}).count(), 1);
  EXPECT_EQ(curve(Bytes{100}).count(), 105);
  EXPECT_THROW(Curve({{Bytes{1}, {}}}), UsageError);
  EXPECT_THROW(Curve({{Bytes{0}, {}}, {Bytes{5}, {}}, {Bytes{5}, {}}}), UsageError);
}

TEST(Wire, ShrinksWhatTravels) {
  EXPECT_EQ(wire_bytes(Bytes{400}, DType::f32, Wire::f32), Bytes{400});
  EXPECT_EQ(wire_bytes(Bytes{400}, DType::f32, Wire::bf16), Bytes{200});
  EXPECT_EQ(wire_bytes(Bytes{400}, DType::f32, Wire::int8), Bytes{104});
  EXPECT_EQ(wire_bytes(Bytes{400}, DType::f16, Wire::bf16), Bytes{400});
}

}  // namespace
}  // namespace riffle
