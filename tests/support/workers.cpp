#include "support/workers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

namespace riffle::test {

namespace {

int run_child(Rank rank, const std::function<void(Rank)>& body) {
  try {
    body(rank);
    return testing::Test::HasFailure() ? 1 : 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "worker {}: {}\n", rank, error.what());
  } catch (...) {
    fmt::print(stderr, "worker {}: unknown exception\n", rank);
  }
  return 1;
}

}  // namespace

Workers::Workers(int count, const std::function<void(Rank)>& body) {
  std::fflush(nullptr);
  for (Rank rank = 0; rank < count; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      const int code = run_child(rank, body);
      std::fflush(nullptr);
      _exit(code);
    }
    pids_.push_back(pid);
  }
}

Workers::~Workers() {
  for (const pid_t pid : pids_) {
    if (pid <= 0) continue;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

void Workers::signal(Rank rank, int number) const {
  const pid_t pid = pids_.at(static_cast<std::size_t>(rank));
  if (pid > 0) kill(pid, number);
}

int Workers::wait(Rank rank, Seconds limit) {
  pid_t& pid = pids_.at(static_cast<std::size_t>(rank));
  const Deadline deadline = after(limit);
  while (pid > 0) {
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) == pid) {
      pid = 0;
      return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    if (Clock::now() > deadline) return -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return -1;
}

std::vector<int> Workers::wait_all(Seconds limit) {
  std::vector<int> codes;
  const Deadline deadline = after(limit);
  for (std::size_t r = 0; r < pids_.size(); ++r)
    codes.push_back(wait(static_cast<Rank>(r), deadline - Clock::now()));
  return codes;
}

std::string unique_job() {
  static std::atomic<int> count = 0;
  return fmt::format("test-{}-{}", getpid(), count.fetch_add(1));
}

std::string name_of(Kind kind) {
  return kind == Kind::loopback ? "loopback" : "shm";
}

void run_world(Kind kind, int size, const std::function<void(Engine&)>& body,
               const EngineOptions& options, Seconds limit) {
  if (kind == Kind::shm) {
    const std::string job = unique_job();
    Workers workers(size, [&](Rank rank) {
      ShmOptions shm;
      static_cast<EngineOptions&>(shm) = options;
      shm.job = job;
      shm.rank = rank;
      shm.size = size;
      const auto engine = make_shm_engine(shm);
      body(*engine);
    });
    const auto codes = workers.wait_all(limit);
    for (std::size_t r = 0; r < codes.size(); ++r) EXPECT_EQ(codes[r], 0) << "rank " << r;
    return;
  }
  LoopbackWorld world(size, options);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(world.engine(rank));
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace riffle::test
