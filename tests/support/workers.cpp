#include "support/workers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <optional>
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

StoreProcess::StoreProcess(const std::string& bind, const std::function<void()>& enter) {
  options_.token = make_token();
  int port[2];
  if (pipe(port) != 0) throw std::runtime_error("no pipe");
  std::fflush(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      enter();
      StoreServerOptions server;
      server.bind = {bind, 0};
      server.token = options_.token;
      const StoreServer store(server);
      const std::string address = print(store.address());
      if (write(port[1], address.data(), address.size()) < 0) _exit(1);
      close(port[0]);
      close(port[1]);
      while (true) pause();
    } catch (const std::exception& error) {
      fmt::print(stderr, "store: {}\n", error.what());
    }
    _exit(1);
  }
  close(port[1]);
  char text[64] = {};
  const ssize_t bytes = read(port[0], text, sizeof text - 1);
  close(port[0]);
  if (bytes <= 0) throw std::runtime_error("the store did not start");
  options_.address = parse_store_address(text, "store");
}

StoreProcess::~StoreProcess() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string name_of(Kind kind) {
  switch (kind) {
    case Kind::loopback:
      return "loopback";
    case Kind::shm:
      return "shm";
    case Kind::tcp:
      return "tcp";
    case Kind::ucx:
      return "ucx";
    case Kind::mixed:
      return "mixed";
  }
  return "";
}

std::vector<Kind> kinds() {
  std::vector<Kind> all{Kind::loopback, Kind::shm, Kind::tcp, Kind::mixed};
  if (ucx_is_available()) all.push_back(Kind::ucx);
  return all;
}

namespace {

void run_threads(int size, const std::function<void(Engine&)>& body, const EngineOptions& options) {
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

void run_shm(Rank rank, int size, const std::string& job, const EngineOptions& options,
             const std::function<void(Engine&)>& body) {
  ShmOptions shm;
  static_cast<EngineOptions&>(shm) = options;
  shm.job = job;
  shm.rank = rank;
  shm.size = size;
  const auto engine = make_shm_engine(shm);
  body(*engine);
}

void run_far(Kind kind, Rank rank, int size, const StoreOptions& at, const EngineOptions& options,
             const std::function<void(Engine&)>& body) {
  const int per_host = kind == Kind::mixed ? 2 : 1;
  Store store(at);
  NetworkEngineOptions far;
  static_cast<EngineOptions&>(far) = options;
  far.store = &store;
  far.job = "test";
  far.rank = rank;
  far.size = size;
  far.host = fmt::format("host{}", (rank + per_host - 1) / per_host);
  far.transport = kind == Kind::ucx ? "ucx" : "tcp";
  const auto engine = make_network_engine(far);
  body(*engine);
}

}  // namespace

void run_world(Kind kind, int size, const std::function<void(Engine&)>& body,
               const EngineOptions& options, Seconds limit) {
  if (kind == Kind::loopback) return run_threads(size, body, options);
  std::optional<StoreProcess> store;
  if (kind != Kind::shm) store.emplace();
  const std::string job = unique_job();
  Workers workers(size, [&](Rank rank) {
    if (kind == Kind::shm)
      run_shm(rank, size, job, options, body);
    else
      run_far(kind, rank, size, store->options(), options, body);
  });
  const auto codes = workers.wait_all(limit);
  for (std::size_t r = 0; r < codes.size(); ++r) EXPECT_EQ(codes[r], 0) << "rank " << r;
}

void expect_absent_named(const std::function<std::unique_ptr<Engine>(Rank rank)>& make) {
  Workers workers(2, [&](Rank rank) {
    try {
      (void)make(rank);
      ADD_FAILURE() << "no error";
    } catch (const CommError& error) {
      EXPECT_EQ(error.failure(), CommFailure::absent) << error.what();
      EXPECT_EQ(error.rank(), 2) << error.what();
    }
  });
  EXPECT_EQ(workers.wait_all(Seconds(20)), std::vector<int>({0, 0}));
}

}  // namespace riffle::test
