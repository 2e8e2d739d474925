// Whatever goes wrong with one worker is an error by name on all others, soon.
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "refusal.h"
#include "riffle/error.h"
#include "runtime/toy.h"
#include "support/workers.h"

namespace riffle {
namespace {

using test::Toy;

constexpr Step kLast = 10;
constexpr Rank kVictim = 2;

// Trains until the victim is gone. The error must name it, with group, bucket and step, in time.
void expect_named(Toy& toy, const std::string& spec) {
  auto begin = Clock::now();
  try {
    for (int i = 0; i < 1000; ++i) {
      begin = Clock::now();
      toy.train_step();
    }
    ADD_FAILURE() << spec << ": nobody noticed";
  } catch (const CommError& error) {
    const Seconds took = Clock::now() - begin;
    EXPECT_LT(took, Seconds(2)) << spec;
    EXPECT_EQ(error.rank(), kVictim) << spec << ": " << error.what();
    EXPECT_GE(error.group().size(), 2) << spec << ": " << error.what();
    EXPECT_GE(error.bucket(), 0) << spec << ": " << error.what();
    // What travelled when it died may be of the step before; of the one before that where it is due
    // a step later, for a worker that is not as far as the victim was.
    const bool travels_on = spec.ends_with("combine-then-adapt");
    EXPECT_GE(error.step(), kLast - (travels_on ? 2 : 1)) << spec << ": " << error.what();
    // It stays broken, and says the same.
    EXPECT_THROW(toy.session().end_step(), CommError);
  }
}

class Killed : public testing::TestWithParam<std::string> {};

TEST_P(Killed, InMidStep) {
  test::Workers workers(4, [&](Rank rank) {
    ShmOptions options;
    options.job = "killed-" + std::to_string(getppid());
    options.rank = rank;
    options.size = 4;
    const auto engine = make_shm_engine(options);
    Toy toy(*engine, GetParam());
    if (rank != kVictim) return expect_named(toy, GetParam());
    for (int i = 0; i < kLast; ++i) toy.train_step();
    toy.forward();
    (void)toy.session().mark_gradient_ready(4);
    (void)toy.session().mark_gradient_ready(3);
    (void)raise(SIGKILL);
  });
  const auto codes = workers.wait_all(Seconds(20));
  for (Rank rank = 0; rank < 4; ++rank)
    EXPECT_EQ(codes[rank], rank == kVictim ? 128 + SIGKILL : 0) << "rank " << rank;
}

// Stopped for three seconds and woken: all train on, to the weights of a run without that.
TEST(Stopped, ForLessThanTheSettingTrainingGoesOn) {
  std::vector<test::Vector> expected(3);
  test::run_world(test::Kind::loopback, 3, [&](Engine& engine) {
    Toy toy(engine, "wfbp");
    toy.train(2 * kLast);
    expected[static_cast<std::size_t>(engine.rank())] = toy.weights();
  });
  test::Workers workers(3, [&](Rank rank) {
    ShmOptions options;
    options.job = "stopped-" + std::to_string(getppid());
    options.rank = rank;
    options.size = 3;
    const auto engine = make_shm_engine(options);
    Toy toy(*engine, "wfbp");
    toy.train(kLast);
    if (rank == kVictim) (void)raise(SIGSTOP);
    toy.train(kLast);
    EXPECT_EQ(toy.weights(), expected[static_cast<std::size_t>(rank)]);
  });
  // It stops when it has come so far; on a slow machine it is woken a little earlier or later.
  int code = -1;
  for (int tries = 0; tries < 20 && code < 0; ++tries) {
    code = workers.wait(kVictim, Seconds(3));
    if (code < 0) workers.signal(kVictim, SIGCONT);
  }
  EXPECT_EQ(code, 0);
  for (const Rank rank : {0, 1}) EXPECT_EQ(workers.wait(rank, Seconds(20)), 0) << rank;
}

class KilledThread : public testing::TestWithParam<std::string> {};

TEST_P(KilledThread, AmongThreads) {
  LoopbackWorld world(4);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < 4; ++rank)
    threads.emplace_back([&, rank] {
      Toy toy(world.engine(rank), GetParam());
      if (rank != kVictim) return expect_named(toy, GetParam());
      for (int i = 0; i < kLast; ++i) toy.train_step();
      toy.forward();
      world.kill(rank);
    });
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Strategies, Killed,
                         testing::Values("wfbp", "bsp", "dear", "sesgd", "ds-sync", "gossip",
                                         "dasgd", "local-sgd:tau=2",
                                         "ds-sync:order=combine-then-adapt"));

INSTANTIATE_TEST_SUITE_P(Strategies, KilledThread, testing::Values("wfbp", "dear", "ds-sync"));

TEST(Ended, UnequalNumbersOfBatchesAreNamed) {
  test::run_world(test::Kind::loopback, 3, [&](Engine& engine) {
    Toy toy(engine, "wfbp");
    const auto begin = Clock::now();
    try {
      toy.train(engine.rank() == 1 ? 5 : 6);
      toy.session().finish();
      ADD_FAILURE() << "rank " << engine.rank() << " went through";
    } catch (const CommError& error) {
      if (engine.rank() == 1) {
        EXPECT_THAT(error.what(), testing::HasSubstr("waited for this rank in step 5"));
      } else {
        EXPECT_EQ(error.rank(), 1) << error.what();
        EXPECT_THAT(error.what(), testing::HasSubstr("after 5 steps"));
      }
    }
    EXPECT_LT(Seconds(Clock::now() - begin), Seconds(3));
  });
}

TEST(Ended, AnExceptionInOneLoopIsNamedByTheOthers) {
  test::run_world(test::Kind::loopback, 4, [&](Engine& engine) {
    Toy toy(engine, "sesgd");
    if (engine.rank() == 3) {
      toy.train(4);
      return;
    }
    try {
      toy.train(100);
      ADD_FAILURE() << "rank " << engine.rank() << " went through";
    } catch (const CommError& error) {
      EXPECT_EQ(error.rank(), 3) << error.what();
    }
  });
}

// Nobody may be blamed for having finished first.
TEST(Ended, WhoIsDoneMayLeave) {
  test::run_world(test::Kind::shm, 4, [&](Engine& engine) {
    Toy toy(engine, "sesgd:bucket=layer");
    toy.train(9);
    if (engine.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    toy.train_step();
    toy.forward();
  });
}

TEST(Differing, StrategyAndModelAreComparedFirst) {
  test::run_world(test::Kind::loopback, 3, [&](Engine& engine) {
    EXPECT_EQ(refusal([&] { Toy(engine, engine.rank() == 2 ? "bsp" : "wfbp"); }),
              "the strategy differs between rank 2 and rank 0");
  });
}

}  // namespace
}  // namespace riffle
