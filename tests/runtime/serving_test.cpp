// asp and ssp on real memory: what holds whoever is fast. Nobody waits for another's step, or not
// beyond the bound; nothing is lost; all end with what is served; a run can be resumed.
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "riffle/error.h"
#include "runtime/reference.h"
#include "support/ranks.h"
#include "support/workers.h"

namespace riffle {
namespace {

using test::Kind;
using test::Style;
using test::Toy;
using test::Vector;

constexpr const char* kSpecs[] = {"asp", "asp:bucket=layer", "ssp:staleness=2",
                                  "ssp:staleness=1,bucket=layer"};

Cluster cluster_of(int n) {
  return parse_cluster("flat:" + std::to_string(n) + ",latency=50us,bandwidth=10Gbps");
}

// A step, and what it has moved is added to `moved`.
void step(Toy& toy, Vector& moved) {
  toy.train_step();
  for (std::size_t k = 0; k < moved.size(); ++k) moved[k] -= test::kRate * toy.velocity[k];
}

// The first weights, and what all ranks have moved, over their number.
Vector what_is_held(Session& session, Vector moved) {
  session.average(moved);
  const Vector start = test::toy_start(1);
  for (std::size_t k = 0; k < moved.size(); ++k) moved[k] += start[k];
  return moved;
}

void expect_everybody_has(Session& session, const Vector& found) {
  Vector first = found;
  session.broadcast(std::as_writable_bytes(std::span(first)));
  EXPECT_EQ(first, found) << "rank " << session.rank();
}

void pause(Rank rank, Step step) {
  if ((rank + step) % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

class Serving : public testing::TestWithParam<std::tuple<Kind, int>> {};

TEST_P(Serving, NothingIsLost) {
  const auto& [kind, n] = GetParam();
  for (const std::string spec : kSpecs)
    for (const Style style : {Style::per_bucket, Style::whole})
      test::run_world(kind, n, [&](Engine& engine) {
        Toy toy(engine, spec, {.style = style, .cluster = cluster_of(n)});
        Vector moved(test::toy_elements());
        for (Step t = 0; t < 25; ++t) {
          pause(engine.rank(), t);
          step(toy, moved);
        }
        toy.session().finish();
        const Vector found = toy.weights();
        EXPECT_LT(test::distance(found, what_is_held(toy.session(), moved)), 1e-12) << spec;
        expect_everybody_has(toy.session(), found);
        EXPECT_LT(toy.session().consensus_distance(), 1e-15) << spec;
        // It goes on after that as before.
        step(toy, moved);
        toy.session().finish();
        EXPECT_LT(test::distance(toy.weights(), what_is_held(toy.session(), moved)), 1e-12);
      });
}
INSTANTIATE_TEST_SUITE_P(Workers, Serving,
                         testing::Combine(testing::Values(Kind::loopback, Kind::shm, Kind::mixed),
                                          testing::Values(3)),
                         [](const auto& each) {
                           return test::name_of(std::get<0>(each.param)) +
                                  std::to_string(std::get<1>(each.param));
                         });
INSTANTIATE_TEST_SUITE_P(More, Serving,
                         testing::Combine(testing::Values(Kind::loopback), testing::Values(2, 8)),
                         [](const auto& each) {
                           return test::name_of(std::get<0>(each.param)) +
                                  std::to_string(std::get<1>(each.param));
                         });

// One rank makes all its steps before another has made its first.
TEST(Asp, NobodyWaitsForASlowWorker) {
  LoopbackWorld world(3);
  std::atomic<bool> ended = false;
  test::run_ranks(world, [&](Rank rank) {
    Toy toy(world.engine(rank), "asp", {.cluster = cluster_of(3)});
    const Deadline deadline = after(Seconds(20));
    while (rank == 2 && !ended && Clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(ended || rank != 2);
    toy.train(20);
    if (rank == 0) ended = true;
    toy.session().finish();
  });
}

// The fast make as many steps more than the slow as the bound says, and then wait.
TEST(Ssp, IsAheadByTheBoundAndNoMore) {
  constexpr int kAhead = 3;
  constexpr int kSlowSteps = 6;
  LoopbackWorld world(2);
  std::atomic<int> made[2] = {0, 0};
  int most = 0;
  test::run_ranks(world, [&](Rank rank) {
    Toy toy(world.engine(rank), "ssp:bucket=single,staleness=" + std::to_string(kAhead),
            {.cluster = cluster_of(2)});
    for (int t = 0; t < kSlowSteps + kAhead; ++t) {
      // The slow one makes a step only when the fast one is as far ahead as it may be.
      const Deadline deadline = after(Seconds(20));
      while (rank == 1 && t < kSlowSteps && made[0] < t + kAhead && Clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      EXPECT_TRUE(made[0] >= t + kAhead || rank == 0 || t >= kSlowSteps) << t;
      // Counted before it is sent: the fast one may be answered at once.
      if (rank == 1) ++made[1];
      toy.train_step();
      toy.forward();  // its answers are here
      if (rank == 1) continue;
      ++made[0];
      most = std::max(most, made[0] - made[1]);
    }
    toy.session().finish();
  });
  EXPECT_EQ(most, kAhead);
}

TEST(Ssp, WithZeroIsSynchronousSgd) {
  for (const int n : {2, 5}) {
    const auto published = test::reference("bsp", World(cluster_of(n)), 40);
    std::vector<Vector> runs;
    for (int run = 0; run < 2; ++run) {
      Vector found;
      test::run_world(Kind::loopback, n, [&](Engine& engine) {
        Toy toy(engine, "ssp:staleness=0,bucket=layer", {.cluster = cluster_of(n)});
        toy.train(40);
        EXPECT_LT(test::distance(toy.weights(), published->at(0)), 1e-10);
        if (engine.rank() == 0) found = toy.weights();
      });
      runs.push_back(found);
    }
    EXPECT_EQ(runs[0], runs[1]);
  }
}

// Who saves drains: the others' moves are in what is saved, and a resumed run goes on from it.
TEST(Asp, AResumedRunLosesNothing) {
  for (const std::string spec : kSpecs)
    test::run_world(Kind::loopback, 4, [&](Engine& engine) {
      Collectives collectives(engine);
      test::ToyOptions options{.cluster = cluster_of(4), .collectives = &collectives};
      Vector moved(test::toy_elements());
      std::vector<std::byte> bytes;
      Vector x;
      Vector v;
      {
        Toy toy(engine, spec, options);
        for (Step t = 0; t < 9; ++t) {
          pause(engine.rank(), t);
          step(toy, moved);
        }
        bytes = toy.session().save();
        x = toy.weights();
        v = toy.velocity;
        EXPECT_LT(test::distance(x, what_is_held(toy.session(), moved)), 1e-12) << spec;
        expect_everybody_has(toy.session(), x);
        toy.session().finish();
      }
      options.resume = bytes;
      options.start = 77;  // what is not restored would show
      Toy toy(engine, spec, options);
      EXPECT_EQ(toy.session().step(), 9);
      toy.set_weights(x);
      toy.velocity.assign(v.begin(), v.end());
      for (Step t = 0; t < 9; ++t) step(toy, moved);
      toy.session().finish();
      EXPECT_LT(test::distance(toy.weights(), what_is_held(toy.session(), moved)), 1e-12) << spec;
    });
}

// Whose shard is gone is named by all others.
TEST(Asp, AKilledOwnerIsAnErrorByName) {
  constexpr Rank kVictim = 1;
  test::Workers workers(3, [&](Rank rank) {
    ShmOptions options;
    options.job = "owner-" + std::to_string(getppid());
    options.rank = rank;
    options.size = 3;
    const auto engine = make_shm_engine(options);
    Toy toy(*engine, "asp", {.cluster = cluster_of(3)});
    try {
      for (int t = 0; t < 100'000; ++t) {
        if (rank == kVictim && t == 8) (void)raise(SIGKILL);
        toy.train_step();
      }
      ADD_FAILURE() << "nobody noticed";
    } catch (const CommError& error) {
      EXPECT_EQ(error.rank(), kVictim) << error.what();
      EXPECT_EQ(error.group().size(), 3) << error.what();
      EXPECT_GE(error.bucket(), 0) << error.what();
      EXPECT_GE(error.step(), 0) << error.what();
    }
  });
  const auto codes = workers.wait_all(Seconds(20));
  for (Rank rank = 0; rank < 3; ++rank)
    EXPECT_EQ(codes[rank], rank == kVictim ? 128 + SIGKILL : 0) << "rank " << rank;
}

TEST(Asp, AveragedIsWhatIsServed) {
  test::run_world(Kind::loopback, 3, [&](Engine& engine) {
    Toy toy(engine, "asp", {.cluster = cluster_of(3)});
    Vector moved(test::toy_elements());
    for (Step t = 0; t < 7; ++t) step(toy, moved);
    std::vector<Vector> copies;
    std::vector<std::byte*> into;
    for (const std::int64_t size : test::kSizes) copies.emplace_back(size);
    for (Vector& copy : copies) into.push_back(reinterpret_cast<std::byte*>(copy.data()));
    toy.session().averaged(into);
    Vector found;
    for (const Vector& copy : copies) found.insert(found.end(), copy.begin(), copy.end());
    EXPECT_LT(test::distance(found, what_is_held(toy.session(), moved)), 1e-12);
    toy.session().finish();
  });
}

}  // namespace
}  // namespace riffle
