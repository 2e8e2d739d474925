// A worker is killed or stopped in the middle of every collective by every algorithm: all others
// must name it, and go on without it.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "riffle/collective.h"
#include "support/collective_reference.h"
#include "support/workers.h"

namespace riffle::test {
namespace {

struct Case {
  Trial::What what;
  const char* algorithm;  // one_shot, zero_copy, staged
};

constexpr int size = 4;
constexpr Rank victim = 2;
constexpr int bucket = 5;
constexpr Step step = 77;

// Calls until something fails. 0: as it must.
void work(const Case& each, const std::string& job, Rank rank, CommFailure expected) {
  ShmOptions shm;
  shm.failure_timeout = milliseconds(300);
  shm.job = job;
  shm.rank = rank;
  shm.size = size;
  const auto engine = make_shm_engine(shm);
  Collectives collectives(*engine);
  const std::string algorithm = each.algorithm;
  const std::size_t count = algorithm == "one_shot" ? 1000 : 400'000;
  Memory memory(*engine, algorithm == "zero_copy", count * 4);
  const TensorView data = tensor_view(memory.as<float>());
  const Group group(everyone(size));
  const CollectiveOptions options{.timeout = Seconds(30), .bucket = bucket, .step = step};
  try {
    while (true) {
      call(collectives, {.what = each.what, .group = group, .count = count, .places = 1}, data,
           options);
      // A root alone waits for nobody; it notices at the next meeting.
      if (each.what == Trial::broadcast) collectives.barrier(group, options);
    }
  } catch (const CommError& error) {
    EXPECT_EQ(error.rank(), victim) << error.what();
    EXPECT_EQ(error.failure(), expected) << error.what();
    EXPECT_EQ(error.group(), group);
    EXPECT_EQ(error.bucket(), bucket);
    EXPECT_EQ(error.step(), step);
  }
  // The others go on in a new epoch.
  const Group survivors({0, 1, 3});
  check(*engine, collectives, false, {.group = survivors, .count = 50'000, .seed = 4, .epoch = 1});
  check(*engine, collectives, true, {.group = survivors, .count = 500, .seed = 5, .epoch = 1});
}

class HostFailure : public testing::TestWithParam<Case> {
 protected:
  static void strike(int signal, CommFailure expected) {
    const std::string job = unique_job();
    Workers workers(size, [&](Rank rank) { work(GetParam(), job, rank, expected); });
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    workers.signal(victim, signal);
    for (const Rank rank : {0, 1, 3}) EXPECT_EQ(workers.wait(rank, Seconds(10)), 0) << rank;
  }
};

TEST_P(HostFailure, KilledIsNamed) {
  strike(SIGKILL, CommFailure::died);
}

TEST_P(HostFailure, StoppedIsNamed) {
  strike(SIGSTOP, CommFailure::frozen);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Trial::What what : Trial::all) {
    all.push_back({what, "one_shot"});
    if (what == Trial::barrier) continue;
    if (what != Trial::shift) all.push_back({what, "zero_copy"});
    all.push_back({what, "staged"});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, HostFailure, testing::ValuesIn(cases()), [](const auto& each) {
  return std::string(name_of(each.param.what)) + "_" + each.param.algorithm;
});

// Stopped for longer than the others wait, then woken: it must learn that it was given up.
TEST(HostFailureOf, WhoWakesUpLateLearnsThatItWasGivenUp) {
  const std::string job = unique_job();
  Workers workers(2, [&](Rank rank) {
    ShmOptions shm;
    shm.failure_timeout = milliseconds(200);
    shm.job = job;
    shm.rank = rank;
    shm.size = 2;
    const auto engine = make_shm_engine(shm);
    Collectives collectives(*engine);
    const Group pair({0, 1});
    std::vector<float> values(100);
    try {
      while (true) collectives.all_reduce(pair, tensor_view(values));
    } catch (const CommError& error) {
      EXPECT_EQ(error.rank(), 1) << error.what();
      if (rank == 1) {
        EXPECT_EQ(error.failure(), CommFailure::aborted) << error.what();
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  workers.signal(1, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  workers.signal(1, SIGCONT);
  EXPECT_EQ(workers.wait_all(Seconds(20)), std::vector<int>({0, 0}));
}

// Makes calls, a few milliseconds apart, until `end`, or fails.
void add_up_until(Engine& engine, const Group& group, Deadline end) {
  Collectives collectives(engine);
  std::vector<float> values(1000);
  while (true) {
    std::fill(values.begin(), values.end(), Clock::now() < end ? 1.0F : 0.0F);
    collectives.all_reduce(group, tensor_view(values));
    EXPECT_EQ(values.front(), values.back());
    if (values.front() == 0) return;  // all are done
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// A paused machine, a swap storm, a debugger: by default a worker that is stopped for three seconds
// goes on as if nothing had happened, and so do the others.
TEST(HostFailureOf, WhoIsStoppedForLessThanTheSettingGoesOn) {
  const std::string job = unique_job();
  const Deadline end = after(Seconds(5));
  Workers workers(3, [&](Rank rank) {
    ShmOptions shm;
    shm.job = job;
    shm.rank = rank;
    shm.size = 3;
    const auto engine = make_shm_engine(shm);
    add_up_until(*engine, Group({0, 1, 2}), end);
    for (Rank each = 0; each < 3; ++each) EXPECT_NE(engine->failure(each), CommFailure::frozen);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  workers.signal(1, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  workers.signal(1, SIGCONT);
  EXPECT_EQ(workers.wait_all(Seconds(60)), std::vector<int>({0, 0, 0}));
}

// Ten seconds of silence by default, not less; the environment's where it has the setting.
TEST(HostFailureOf, WhoIsStoppedIsFailedAfterTheSetting) {
  for (const double seconds : {10.0, 0.5}) {
    if (seconds != 10) setenv("RIFFLE_FAILURE_TIMEOUT", "500ms", 1);
    const std::string job = unique_job();
    Workers workers(2, [&](Rank rank) {
      ShmOptions shm;
      shm.job = job;
      shm.rank = rank;
      shm.size = 2;
      const auto engine = make_shm_engine(shm);
      if (rank == 1) (void)raise(SIGSTOP);
      const auto begin = Clock::now();
      try {
        add_up_until(*engine, Group({0, 1}), after(Seconds(60)));
        ADD_FAILURE() << "nobody noticed";
      } catch (const CommError& error) {
        EXPECT_EQ(error.rank(), 1) << error.what();
        EXPECT_EQ(error.failure(), CommFailure::frozen) << error.what();
        const Seconds took = Clock::now() - begin;
        EXPECT_GT(took, Seconds(0.9 * seconds)) << error.what();
        EXPECT_LT(took, Seconds(seconds + 8)) << error.what();
      }
    });
    EXPECT_EQ(workers.wait(0, Seconds(60)), 0);
  }
  unsetenv("RIFFLE_FAILURE_TIMEOUT");
}

// Slow is not dead: a peer that computes for longer than the failure timeout is waited for.
TEST(HostFailureOf, WhoComputesForLongIsAlive) {
  EngineOptions options;
  options.failure_timeout = milliseconds(200);
  run_world(
      Kind::shm, 2,
      [](Engine& engine) {
        Collectives collectives(engine);
        std::vector<float> values(100, 1);
        volatile double sum = 0;
        const Deadline end = after(milliseconds(800));
        while (engine.rank() == 1 && Clock::now() < end) sum = sum + 1;
        collectives.all_reduce(Group({0, 1}), tensor_view(values));
      },
      options);
}

// Waiting is sleeping: a worker blocked in a collective uses less than 5 % of a core, its heartbeat
// included.
TEST(HostFailureOf, WhoWaitsCostsNextToNothing) {
  run_world(Kind::shm, 2, [](Engine& engine) {
    Collectives collectives(engine);
    std::vector<float> values(10'000, 1);
    const auto blocked = std::chrono::seconds(10);
    if (engine.rank() == 1) std::this_thread::sleep_for(blocked);
    const std::clock_t before = std::clock();  // CPU time of all threads
    collectives.all_reduce(Group({0, 1}), tensor_view(values));
    const double used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    EXPECT_LT(used, 0.05 * 10) << "CPU seconds";
  });
}

// Inodes of the shared segments that a process maps.
std::set<std::string> segments_of(const std::string& process) {
  std::set<std::string> inodes;
  std::ifstream maps("/proc/" + process + "/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string range, access, offset, device, inode, name;
    words >> range >> access >> offset >> device >> inode >> name;
    if (name.starts_with("/memfd:riffle")) inodes.insert(inode);
  }
  return inodes;
}

bool anybody_maps(const std::set<std::string>& inodes) {
  for (const auto& process : std::filesystem::directory_iterator("/proc"))
    for (const std::string& inode : segments_of(process.path().filename().string()))
      if (inodes.contains(inode)) return true;
  return false;
}

TEST(HostFailureOf, MemoryVanishesWithKilledWorkers) {
  const std::string job = unique_job();
  int started[2];
  ASSERT_EQ(pipe(started), 0);
  Workers workers(2, [&](Rank rank) {
    ShmOptions shm;
    shm.job = job;
    shm.rank = rank;
    shm.size = 2;
    const auto engine = make_shm_engine(shm);
    const Buffer buffer = engine->allocate(std::size_t{8} << 20);
    Collectives collectives(*engine);
    collectives.barrier(Group({0, 1}));
    const pid_t pid = getpid();
    EXPECT_EQ(write(started[1], &pid, sizeof pid), ssize_t{sizeof pid});
    std::this_thread::sleep_for(std::chrono::seconds(60));
  });
  pid_t pids[2];
  for (pid_t& pid : pids) ASSERT_EQ(read(started[0], &pid, sizeof pid), ssize_t{sizeof pid});
  const auto inodes = segments_of(std::to_string(pids[0]));
  EXPECT_EQ(inodes.size(), 2);  // each maps both
  EXPECT_EQ(inodes, segments_of(std::to_string(pids[1])));
  EXPECT_TRUE(anybody_maps(inodes));
  workers.signal(0, SIGKILL);
  workers.signal(1, SIGKILL);
  EXPECT_EQ(workers.wait_all(Seconds(20)), std::vector<int>({137, 137}));
  EXPECT_FALSE(anybody_maps(inodes));  // and memory without a name goes with its last user
  close(started[0]);
  close(started[1]);
}

TEST(HostFailureOf, AnAbsentRankIsNamedAtTheStart) {
  const std::string job = unique_job();
  expect_absent_named([&](Rank rank) {
    ShmOptions shm;
    shm.job = job;
    shm.rank = rank;
    shm.size = 3;
    shm.join_timeout = milliseconds(300);
    return make_shm_engine(shm);
  });
}

}  // namespace
}  // namespace riffle::test
