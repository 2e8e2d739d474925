// strategy="auto": planned on what was measured, agreed by all ranks, exact unless told otherwise,
// kept by checkpoints, replaced by a plan that was made before.
#include "riffle/automatic.h"

#include <gtest/gtest.h>

#include "refusal.h"
#include "runtime/reference.h"
#include "runtime/toy.h"
#include "support/workers.h"

namespace riffle {
namespace {

using test::Kind;
using test::run_world;
using test::Toy;
using test::ToyOptions;
using test::Vector;

constexpr int kWorkers = 3;
constexpr int kPlanned = 5;  // when the plan is made

// A network on which a bucket per layer is bad, so that there is something to choose.
const std::string kCluster = "flat:3,latency=1ms,bandwidth=100Mbps";

void train(Toy& toy, int steps, std::chrono::microseconds pause = {}) {
  for (int i = 0; i < steps; ++i) {
    toy.forward();
    toy.backward_slowly(pause);
    toy.update();
    (void)toy.session().relayout();
  }
  toy.forward();
}

bool is_exact(const NamedStrategy& strategy) {
  return StrategyTable::builtin().info(strategy.name).exact;
}

TEST(Automatic, IsSpelledLikeAStrategy) {
  const ChosenStrategy plain = choose_strategy("auto");
  ASSERT_TRUE(plain.automatic);
  EXPECT_TRUE(is_exact(plain.strategy));
  EXPECT_FALSE(plain.automatic->inexact);
  EXPECT_TRUE(plain.automatic->replan);
  const ChosenStrategy told = choose_strategy("auto:inexact=true,replan=false");
  EXPECT_TRUE(told.automatic->inexact);
  EXPECT_FALSE(told.automatic->replan);
  EXPECT_FALSE(choose_strategy("sesgd:group=2").automatic);
  EXPECT_THAT(refusal([] { (void)choose_strategy("auto:exact=true"); }),
              testing::HasSubstr("exact"));
  EXPECT_THAT(refusal([] { (void)choose_strategy("automatic"); }), testing::HasSubstr("wfbp"));
}

TEST(Automatic, PlansOnceAndStaysExact) {
  for (const Kind kind : {Kind::loopback, Kind::shm})
    run_world(kind, kWorkers, [&](Engine& engine) {
      Toy toy(engine, "auto", {.cluster = parse_cluster(kCluster)});
      train(toy, kPlanned - 1);
      EXPECT_FALSE(toy.session().plan());
      train(toy, 45);
      const auto plan = toy.session().plan();
      ASSERT_TRUE(plan);
      for (const Candidate& each : plan->candidates) EXPECT_TRUE(each.exact) << each.spec;
      EXPECT_EQ(toy.session().sensed().size(), 1U);
      // The first one, or what ran before and is as fast as far as one can tell.
      const auto ran =
          std::ranges::find(plan->candidates, toy.session().strategy().spec, &Candidate::spec);
      ASSERT_NE(ran, plan->candidates.end());
      EXPECT_LT(ran->per_effective_step, plan->candidates.front().per_effective_step * 1.03);
      // Whatever runs, the weights are those of synchronous SGD.
      const auto expected = test::reference("bsp", World(parse_cluster(kCluster)), 49);
      EXPECT_LT(test::distance(toy.weights(), expected->at(engine.rank())), 1e-12);
    });
}

// With so much computing to hide under, averages that are gathered in the next forward are faster.
TEST(Automatic, ChangesBetweenExactStrategies) {
  const Cluster cluster = parse_cluster("flat:3,latency=10us,bandwidth=500Kbps");
  for (const Kind kind : {Kind::loopback, Kind::shm})
    run_world(kind, kWorkers, [&](Engine& engine) {
      Toy toy(engine, "auto", {.cluster = cluster});
      train(toy, 20, std::chrono::microseconds(2000));
      EXPECT_NE(toy.session().strategy().spec, "mg-wfbp") << to_json(*toy.session().plan());
      EXPECT_TRUE(is_exact(toy.session().strategy()));
      const auto expected = test::reference("bsp", World(cluster), 20);
      EXPECT_LT(test::distance(toy.weights(), expected->at(engine.rank())), 1e-12);
    });
}

// Rank 0's times decide: the others have measured something else.
TEST(Automatic, AllRanksTakeRankZerosPlan) {
  std::vector<std::string> plans(kWorkers);
  std::vector<std::string> specs(kWorkers);
  run_world(Kind::loopback, kWorkers, [&](Engine& engine) {
    Toy toy(engine, "auto", {.cluster = parse_cluster(kCluster)});
    train(toy, kPlanned, std::chrono::microseconds(300 * engine.rank()));
    Plan plan = *toy.session().plan();
    for (Candidate& each : plan.candidates) each.measured.reset();
    plans[engine.rank()] = to_json(plan);
    specs[engine.rank()] = toy.session().strategy().spec;
  });
  for (int rank = 1; rank < kWorkers; ++rank) {
    EXPECT_EQ(plans[rank], plans[0]);
    EXPECT_EQ(specs[rank], specs[0]);
  }
}

TEST(Automatic, InexactOnlyWhenTold) {
  run_world(Kind::loopback, kWorkers, [&](Engine& engine) {
    Toy toy(engine, "auto:inexact=true", {.cluster = parse_cluster(kCluster)});
    train(toy, 20, std::chrono::microseconds(100));
    // Exchanging less is faster on this network.
    EXPECT_FALSE(is_exact(toy.session().strategy())) << toy.session().strategy().spec;
    EXPECT_TRUE(toy.session().keeps_weights());
    EXPECT_THAT(toy.session().sensed().back().what, testing::HasSubstr("changes the mathematics"));
    toy.session().finish();
    EXPECT_LT(toy.session().consensus_distance(), 1e-12);
  });
}

TEST(Automatic, PredictionStandsBesideMeasurement) {
  run_world(Kind::loopback, kWorkers, [&](Engine& engine) {
    Toy toy(engine, "auto", {.cluster = parse_cluster(kCluster)});
    train(toy, 12, std::chrono::microseconds(500));
    const Plan plan = *toy.session().plan();
    const std::string& now = toy.session().strategy().spec;
    const auto ran = std::ranges::find(plan.candidates, now, &Candidate::spec);
    ASSERT_NE(ran, plan.candidates.end());
    ASSERT_TRUE(ran->measured);
    EXPECT_GT(*ran->measured, microseconds(5 * 500) * 0.99);  // five layers
    EXPECT_GT(ran->simulation.iteration, microseconds(4 * 500));
  });
}

// The checkpoint has the plan: what resumes runs what ran, and goes on bit for bit.
TEST(Automatic, ACheckpointKeepsThePlan) {
  run_world(Kind::loopback, kWorkers, [&](Engine& engine) {
    Collectives collectives(engine);
    const ToyOptions options{.cluster = parse_cluster(kCluster), .collectives = &collectives};
    std::vector<std::byte> saved;
    Vector weights;
    Vector velocity;
    Vector whole;
    std::string spec;
    std::string plan;
    {
      Toy toy(engine, "auto", options);
      train(toy, 8);
      saved = toy.session().save();
      weights = toy.weights();
      velocity = toy.velocity;
      spec = toy.session().strategy().spec;
      train(toy, 12);
      whole = toy.weights();
    }
    ToyOptions resuming = options;
    resuming.resume = saved;
    Toy toy(engine, "auto", resuming);
    EXPECT_EQ(toy.session().strategy().spec, spec);
    EXPECT_TRUE(toy.session().plan());
    toy.set_weights(weights);
    toy.velocity = velocity;
    train(toy, 12);
    EXPECT_EQ(toy.weights(), whole);
    EXPECT_TRUE(toy.session().sensed().empty());  // nothing was planned anew
  });
}

TEST(Automatic, APlanThatWasMadeBeforeIsTaken) {
  const StrategyTable table = StrategyTable::builtin();
  Trace trace{.model = "toy", .dtype = DType::f64, .layers = {}, .source = "made up"};
  for (const std::int64_t size : test::kSizes)
    trace.layers.push_back({"p", size, milliseconds(1), milliseconds(1)});
  Plan plan = make_plan(trace, parse_cluster(kCluster), table, {"sesgd", "wfbp", "dear"});
  // Another order than auto would choose by itself: sesgd first, of the exact ones wfbp.
  std::ranges::sort(plan.candidates, std::greater{}, &Candidate::spec);
  std::ranges::rotate(plan.candidates, plan.candidates.begin() + 1);
  ASSERT_EQ(plan.candidates.front().spec, "sesgd");
  std::ranges::swap(plan.candidates[1], plan.candidates[2]);
  plan = plan_from_json(to_json(plan), "a file");
  run_world(Kind::loopback, kWorkers, [&](Engine& engine) {
    ToyOptions options;
    options.plan = plan;
    {
      Toy toy(engine, "auto", options);
      EXPECT_EQ(toy.session().strategy().spec, "wfbp");
      train(toy, 8);
      EXPECT_EQ(toy.session().strategy().spec, "wfbp");
      EXPECT_EQ(toy.session().trace(), *plan.trace);
      EXPECT_EQ(toy.session().world().cluster, *plan.network);
    }
  });
  run_world(Kind::loopback, kWorkers, [&](Engine& engine) {
    ToyOptions options;
    options.plan = plan;
    EXPECT_EQ(Toy(engine, "auto:inexact=true", options).session().strategy().spec, "sesgd");
  });
  run_world(Kind::loopback, 2, [&](Engine& engine) {
    ToyOptions options;
    options.plan = plan;
    EXPECT_THAT(refusal([&] { Toy(engine, "auto", options); }),
                testing::HasSubstr("is for 3 workers, there are 2"));
  });
  run_world(Kind::loopback, kWorkers, [&](Engine& engine) {
    ToyOptions options;
    options.plan = plan;
    EXPECT_THAT(refusal([&] { Toy(engine, "bsp", options); }), testing::HasSubstr("a plan and"));
  });
}

}  // namespace
}  // namespace riffle
