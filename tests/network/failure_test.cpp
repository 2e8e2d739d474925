// A rank that dies, freezes or is cut off, between hosts: everybody who waits learns it, a death in
// under two seconds, silence after the setting, and from an error that says who, where and in the
// middle of what.
#include <signal.h>

#include <thread>

#include "far_workers.h"
#include "support/sanitized.h"

namespace riffle::test {
namespace {

enum class Fault { killed, stopped, cut, cut_to, cut_from };

constexpr int size = 4;
constexpr Rank victim = 2;
constexpr Step step = 17;

constexpr EngineOptions soon{.failure_timeout = Seconds(1)};

struct Case {
  Fault fault;
  Trial::What what;
  const char* name;
  bool is_rough = false;  // the network is 5 ms long, loses packets and delays them unevenly
};

struct Report {
  std::atomic<int> working;              // ranks that have made a call
  std::atomic<std::int64_t> struck;      // when
  std::atomic<std::int64_t> told[size];  // when it threw; 0: never
  std::atomic<int> named[size];
};

// A survivor of a killed or stopped rank must name that rank. A cut is seen from both of its ends:
// who is cut off names somebody else. Who only cannot be heard still hears: the others may tell it
// that it is the one.
void expect_right_name(const Case& each, Rank rank, const CommError& error) {
  const bool cut_off = rank == victim;
  if (!cut_off || each.fault != Fault::cut_from) {
    EXPECT_EQ(error.rank() == victim, !cut_off) << error.what();
  }
  EXPECT_TRUE(error.failure() == CommFailure::died || error.failure() == CommFailure::frozen ||
              error.failure() == CommFailure::aborted)
      << error.what();
  EXPECT_FALSE(error.host().empty()) << error.what();
  EXPECT_EQ(error.group(), Membership::all(size).ranks) << error.what();
  EXPECT_EQ(error.operation(), name_of(each.what)) << error.what();
  EXPECT_EQ(error.step(), step) << error.what();
}

void work(const FarWorld& world, const Case& each, Rank rank, Report& report) {
  // Deaths must not take the setting's time, so it is left long for them.
  const FarEngine joined = world.join(rank, each.fault == Fault::killed ? EngineOptions{} : soon);
  Collectives collectives(*joined.engine);
  Trial trial{.what = each.what, .group = Membership::all(size).ranks};
  std::vector<float> values(20'000);
  for (int i = 0;; ++i) {
    try {
      call(collectives, trial, tensor_view(values), {.timeout = Seconds(30), .step = step});
    } catch (const CommError& error) {
      report.told[rank].store(nanoseconds_now());
      report.named[rank].store(error.rank());
      expect_right_name(each, rank, error);
      return;
    }
    if (i == 10) report.working.fetch_add(1);
  }
}

void strike(const FarWorld& world, const Workers& workers, Fault fault) {
  if (fault == Fault::killed) return workers.signal(victim, SIGKILL);
  if (fault == Fault::stopped) return workers.signal(victim, SIGSTOP);
  if (fault != Fault::cut_from) world.lab().cut_to(victim);
  if (fault != Fault::cut_to) world.lab().cut_from(victim);
}

class FarFailure : public testing::TestWithParam<Case> {};

TEST_P(FarFailure, IsNamedByAllInTime) {
  NEEDS_HOSTS();
  const Fault fault = GetParam().fault;
  Shared<Report> report;
  const FarWorld world(size, 1, GetParam().is_rough ? milliseconds(5) : Seconds(0));
  if (GetParam().is_rough) world.disturb(0.01, milliseconds(2));
  Workers workers(size, [&](Rank rank) { work(world, GetParam(), rank, *report); });
  const Deadline started = after(Seconds(20));
  while (report->working.load() < size && Clock::now() < started)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_EQ(report->working.load(), size);
  const std::int64_t struck = nanoseconds_now();
  strike(world, workers, fault);
  for (Rank rank = 0; rank < size; ++rank) {
    if (rank == victim && (fault == Fault::killed || fault == Fault::stopped)) continue;
    EXPECT_EQ(workers.wait(rank, Seconds(10)), 0) << "rank " << rank;
    const double took = static_cast<double>(report->told[rank].load() - struck) * 1e-9;
    std::printf("  rank %d named rank %d after %.2f s\n", rank, report->named[rank].load(), took);
    EXPECT_LT(took, sanitized ? 6.0 : 2.0) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, FarFailure,
    testing::Values(Case{Fault::killed, Trial::all_reduce, "killed_all_reduce"},
                    Case{Fault::stopped, Trial::all_reduce, "stopped_all_reduce"},
                    Case{Fault::cut, Trial::all_reduce, "cut_all_reduce"},
                    Case{Fault::cut_to, Trial::all_reduce, "cut_to_all_reduce"},
                    Case{Fault::cut_from, Trial::all_reduce, "cut_from_all_reduce"},
                    Case{Fault::killed, Trial::barrier, "killed_barrier"},
                    Case{Fault::cut_from, Trial::broadcast, "cut_from_broadcast"},
                    Case{Fault::killed, Trial::all_reduce, "killed_rough", true},
                    Case{Fault::stopped, Trial::all_reduce, "stopped_rough", true},
                    Case{Fault::cut, Trial::all_reduce, "cut_rough", true}),
    [](const auto& each) { return each.param.name; });

// Slow is not dead: a peer that computes for much longer than the failure timeout is waited for.
TEST(FarFailureOf, WhoComputesForLongIsAlive) {
  NEEDS_HOSTS();
  compute_for(Seconds(3), soon);
}

// Heartbeats get lost like everything else: while some come through, nobody is given up.
TEST(FarFailureOf, WhoIsHeardBadlyIsAlive) {
  NEEDS_HOSTS();
  const FarWorld world(3, 1, milliseconds(2));
  world.disturb(0.1, milliseconds(5));
  const Deadline end = after(Seconds(4));
  world.run(
      [&](Engine& engine) {
        Collectives collectives(engine);
        for (float share = 1; share == 1;) {  // of those who would go on
          share = Clock::now() < end ? 1.0F : 0.0F;
          collectives.all_reduce(Group({0, 1, 2}), tensor_view(std::span(&share, 1)));
        }
      },
      Seconds(60), soon);
}

// Waiting is sleeping, also for the network.
TEST(FarFailureOf, WhoWaitsCostsNextToNothing) {
  NEEDS_HOSTS();
  const FarWorld world(2, 1);
  world.run([](Engine& engine) {
    Collectives collectives(engine);
    std::vector<float> values(10'000, 1);
    collectives.all_reduce(Group({0, 1}), tensor_view(values));
    if (engine.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(2));
    const std::clock_t before = std::clock();  // CPU time of all threads
    collectives.all_reduce(Group({0, 1}), tensor_view(values));
    const double used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    EXPECT_LT(used, 0.05 * 2) << "CPU seconds";
  });
}

TEST(FarFailureOf, WhoWakesUpLateLearnsThatItWasGivenUp) {
  NEEDS_HOSTS();
  const FarWorld world(2, 1);
  Workers workers(2, [&](Rank rank) {
    EngineOptions options;
    options.failure_timeout = milliseconds(400);
    const FarEngine joined = world.join(rank, options);
    Collectives collectives(*joined.engine);
    std::vector<float> values(100);
    try {
      while (true) collectives.all_reduce(Group({0, 1}), tensor_view(values));
    } catch (const CommError& error) {
      // The one that slept either hears so, or finds its connection closed.
      if (rank == 0) {
        EXPECT_EQ(error.rank(), 1) << error.what();
      }
    }
    std::this_thread::sleep_for(std::chrono::seconds(2));
    if (rank == 1) {
      EXPECT_TRUE(joined.engine->failure(0).has_value() || joined.engine->failure(1).has_value());
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  workers.signal(1, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  workers.signal(1, SIGCONT);
  EXPECT_EQ(workers.wait_all(Seconds(20)), std::vector<int>({0, 0}));
}

// By default three seconds of silence, of a worker or of a link, are nothing: everybody goes on.
TEST(FarFailureOf, ShortSilenceIsWaitedFor) {
  NEEDS_HOSTS();
  const FarWorld world(3, 1);
  const Deadline end = after(Seconds(10));
  Workers workers(3, [&](Rank rank) {
    const FarEngine joined = world.join(rank);
    Collectives collectives(*joined.engine);
    std::vector<float> values(20'000);
    while (true) {
      std::fill(values.begin(), values.end(), Clock::now() < end ? 1.0F : 0.0F);
      collectives.all_reduce(Group({0, 1, 2}), tensor_view(values));
      EXPECT_EQ(values.front(), values.back());
      if (values.front() == 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  std::this_thread::sleep_for(std::chrono::seconds(1));
  workers.signal(1, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  workers.signal(1, SIGCONT);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  world.cut(2);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  world.mend(2);
  EXPECT_EQ(workers.wait_all(Seconds(60)), std::vector<int>({0, 0, 0}));
}

TEST(FarFailureOf, AnAbsentRankIsNamedAtTheStart) {
  const StoreProcess at;
  expect_absent_named([&](Rank rank) {
    Store store(at.options());
    NetworkEngineOptions far;
    far.store = &store;
    far.job = "test";
    far.rank = rank;
    far.size = 3;
    far.join_timeout = milliseconds(300);
    return make_network_engine(far);
  });
}

}  // namespace
}  // namespace riffle::test
