// local-sgd, dasgd, diloco, slowmo and noloco: strategies with rounds; gossip.
#include <gmock/gmock.h>

#include "refusal.h"
#include "riffle/error.h"
#include "strategies/bucketing.h"
#include "support/programs.h"

namespace riffle::test {
namespace {

TEST(LocalSgd, AveragesEveryTau) {
  for (Step step = 0; step < 16; ++step)
    EXPECT_EQ(program("local-sgd:tau=5", step, flat(4)).exchanges.size(), step % 5 == 4 ? 1U : 0U);
  EXPECT_EQ(print(program("local-sgd", 7, flat(2)).exchanges.front()),
            "bucket 0 weight all_reduce {0 1}, step_done -> before_forward +1, replace");
}

TEST(Dasgd, TheAverageArrivesLate) {
  EXPECT_EQ(print(program("dasgd:delay=3", 3, flat(2)).exchanges.front()),
            "bucket 0 weight all_reduce {0 1}, step_done -> after_step +3, correct 1");
  EXPECT_EQ(print(program("dasgd:merge=mix", 3, flat(2)).exchanges.front()),
            "bucket 0 weight all_reduce {0 1}, step_done -> after_step +1, mix 0.25");
  EXPECT_EQ(make("dasgd:delay=3")->traits(flat(2)).staleness, 3);
}

TEST(Dasgd, BadOptions) {
  EXPECT_THROW(make("dasgd:tau=0"), UsageError);
  EXPECT_THROW(make("dasgd:delay=0"), UsageError);
  EXPECT_THROW(make("dasgd:tau=3,delay=4"), UsageError);
  EXPECT_THROW(make("dasgd:xi=0.5"), UsageError);
  EXPECT_THROW(make("dasgd:merge=mix,xi=1"), UsageError);
}

TEST(Diloco, TakesAnOuterStep) {
  EXPECT_EQ(print(program("diloco", 19, flat(2)).exchanges.front()),
            "bucket 0 weight all_reduce {0 1}, step_done -> before_forward +1, outer 0.7 momentum "
            "0.9");
}

// The steps of the first round and of the next at which each fragment leaves.
std::string turns(const std::string& spec, int layers = 12) {
  const NamedStrategy strategy = make(spec);
  const BucketPlan plan = buckets(strategy, flat(2), trace(layers));
  std::string text;
  for (Step step = 0; step < 2 * strategy->traits(flat(2)).period; ++step)
    for (const Exchange& exchange : strategy->program(step, flat(2), plan).exchanges)
      text += fmt::format("{}:{} ", step, exchange.bucket);
  return text;
}

TEST(Diloco, FragmentsTakeTurnsEvenly) {
  EXPECT_EQ(turns("diloco:tau=6"), "5:0 11:0 ");
  EXPECT_EQ(turns("diloco:tau=6,fragments=3"), "1:0 3:1 5:2 7:0 9:1 11:2 ");
  EXPECT_EQ(turns("diloco:tau=7,fragments=3,overlap=2"), "1:0 3:1 6:2 8:0 10:1 13:2 ");
  EXPECT_EQ(turns("diloco:tau=4,fragments=4"), "0:0 1:1 2:2 3:3 4:0 5:1 6:2 7:3 ");
  // A layer is never cut.
  EXPECT_EQ(turns("diloco:tau=6,fragments=3", 2), "2:0 5:1 8:0 11:1 ");
}

TEST(Diloco, FragmentsAreOfAboutTheSameSize) {
  EXPECT_EQ(layers_by_share(trace(9), 4), (std::vector<int>{3, 2, 2, 2}));
  EXPECT_EQ(layers_by_share(trace(8), 4), (std::vector<int>{2, 2, 2, 2}));
  EXPECT_EQ(layers_by_share(trace(2), 4), (std::vector<int>{1, 1}));
  Trace uneven = trace(5);
  uneven.layers[0].elements *= 100;  // the last bucket holds the first layers
  EXPECT_EQ(layers_by_share(uneven, 3), (std::vector<int>{3, 1, 1}));
  uneven = trace(5);
  uneven.layers[4].elements *= 100;
  EXPECT_EQ(layers_by_share(uneven, 3), (std::vector<int>{1, 1, 3}));
}

TEST(Diloco, StreamingMergesLate) {
  const std::string late =
      "bucket 0 weight all_reduce {0 1}, step_done -> after_step +2, outer 0.7 ";
  EXPECT_EQ(print(program("diloco:tau=3,overlap=2", 2, flat(2)).exchanges.front()),
            late + "momentum 0.9 xi 0.5");
  EXPECT_EQ(print(program("diloco:tau=3,overlap=2,mix_state=true", 2, flat(2)).exchanges.back()),
            "bucket 0 state all_reduce {0 1}, step_done -> after_step +2, mix 0.5");
  EXPECT_EQ(make("diloco:tau=9,fragments=3,overlap=2")->traits(flat(2)).staleness, 2);
  // Without them it is what it was, whatever the spelling.
  for (Step step = 0; step < 20; ++step)
    EXPECT_EQ(program("diloco:fragments=1,overlap=0", step, flat(4)),
              program("diloco", step, flat(4)));
}

TEST(Diloco, BadOptionsSayWhy) {
  const auto why = [](const std::string& spec) { return refusal([&] { make(spec); }); };
  EXPECT_EQ(why("diloco:tau=4,fragments=5"),
            "strategy diloco: fragments: a round of tau=4 steps has no turn for each of 5");
  EXPECT_EQ(why("diloco:tau=9,fragments=3,overlap=3"),
            "strategy diloco: overlap: 3 is not below tau/fragments = 9/3: a fragment would still "
            "travel when the next one leaves");
  EXPECT_EQ(why("diloco:xi=0.5"),
            "strategy diloco: xi: only what is merged late (overlap above 0) leaves a local share");
  EXPECT_EQ(why("diloco:overlap=1,xi=0"),
            "strategy diloco: xi: 0 would lose the steps that are taken under the exchange");
  EXPECT_EQ(why("diloco:overlap=1,xi=1"), "strategy diloco: xi: 1 would never mix");
}

TEST(Slowmo, TakesAHeavyBallStep) {
  EXPECT_EQ(
      print(program("slowmo", 11, flat(2)).exchanges.front()),
      "bucket 0 weight all_reduce {0 1}, step_done -> before_forward +1, outer 1 momentum 0.5 "
      "heavy-ball");
  EXPECT_TRUE(program("slowmo", 10, flat(2)).exchanges.empty());
  EXPECT_THROW(make("slowmo:momentum=1"), UsageError);
}

TEST(Noloco, PairsAreDrawnAnewInEveryRound) {
  const World world = flat(8);
  std::set<std::string> seen;
  for (Step round = 0; round < 16; ++round) {
    const Program meeting = program("noloco:tau=3", 3 * round + 2, world);
    std::set<Rank> met;
    for (const Exchange& exchange : meeting.exchanges) {
      EXPECT_EQ(exchange.group.size(), 2);
      met.insert(exchange.group.begin(), exchange.group.end());
      EXPECT_EQ(exchange.merge, outer(0.7, 0.5, false));
      EXPECT_EQ(exchange.due, before_forward());
    }
    EXPECT_EQ(met.size(), 8U);
    seen.insert(groups("noloco:tau=3", 3 * round + 2, world));
    EXPECT_TRUE(program("noloco:tau=3", 3 * round + 1, world).exchanges.empty());
  }
  EXPECT_GT(seen.size(), 12U);  // of 105 pairings
  EXPECT_EQ(make("noloco:tau=3")->traits(world).period, 0);
  EXPECT_EQ(make("noloco:tau=3")->traits(world).round, 3);
}

TEST(Noloco, OddOnesMeetInThree) {
  std::multiset<int> sizes;
  for (const Exchange& exchange : program("noloco:tau=1", 0, flat(7)).exchanges)
    sizes.insert(exchange.group.size());
  EXPECT_EQ(sizes, (std::multiset<int>{2, 2, 3}));
  EXPECT_EQ(make("noloco:tau=4")->traits(flat(3)).period, 4);  // always the same three
}

TEST(Noloco, MomentumMustNotDriveWorkersApart) {
  EXPECT_EQ(
      refusal([] { make("noloco:momentum=0.9"); }),
      "strategy noloco: outer: 0.7 is not below 2*(1 - momentum^2) = 0.38: workers would drift "
      "apart");
  EXPECT_NO_THROW(make("noloco:outer=0.37,momentum=0.9"));
  EXPECT_THROW(make("noloco:tau=0"), UsageError);
}

TEST(Gossip, PeersAreAtPowersOfTwo) {
  const auto shift = [](Step step, int workers) {
    return program("gossip", step, flat(workers)).exchanges.front().shift;
  };
  EXPECT_EQ(shift(0, 8), 1);
  EXPECT_EQ(shift(1, 8), 2);
  EXPECT_EQ(shift(2, 8), 4);
  EXPECT_EQ(shift(3, 8), 1);
  EXPECT_EQ(shift(3, 9), 8);
  EXPECT_EQ(make("gossip")->traits(flat(9)).period, 4);
  EXPECT_EQ(make("gossip")->traits(flat(1)).period, 1);
}

TEST(Gossip, OrdersOfMixing) {
  EXPECT_EQ(print(program("gossip", 1, flat(4)).exchanges.front()),
            "bucket 0 weight shift(2) {0 1 2 3}, bucket_stepped -> before_forward +1, replace");
  EXPECT_EQ(print(program("gossip:order=combine-then-adapt", 1, flat(4)).exchanges.front()),
            "bucket 0 weight shift(2) {0 1 2 3}, step_done -> before_step +1, correct 1");
  EXPECT_EQ(make("gossip")->traits(flat(4)).staleness, 0);
  EXPECT_EQ(make("gossip:order=combine-then-adapt")->traits(flat(4)).staleness, 1);
}

TEST(Hierarchical, IsTwoLevel) {
  EXPECT_EQ(program("hierarchical", 0, racks("2x2")).exchanges.front().algorithm,
            Algorithm::two_level);
  EXPECT_THROW(make("hierarchical:algorithm=ring"), UsageError);
}

}  // namespace
}  // namespace riffle::test
