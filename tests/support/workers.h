// N workers for a test: forked processes over shm or tcp, or threads over loopback.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "riffle/make_engine.h"

namespace riffle::test {

// Forked processes, rank by rank. A body that throws, or a failed expectation in it, prints and
// makes the process exit with 1.
class Workers {
 public:
  Workers(int count, const std::function<void(Rank)>& body);
  ~Workers();  // kills whoever is left
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void signal(Rank rank, int number) const;
  // Waits for a process to end; its exit code, 128 + n for signal n, -1 after the time.
  int wait(Rank rank, Seconds limit = Seconds(60));
  // Exit codes of all.
  std::vector<int> wait_all(Seconds limit = Seconds(60));

 private:
  std::vector<pid_t> pids_;  // 0: reaped
};

// A job name that no other test uses at the same time.
std::string unique_job();

// A store in a process of its own, so that workers can be forked from one thread.
class StoreProcess {
 public:
  // Listens on a numeric address or a host's interface, seen from where `enter` brings the process.
  explicit StoreProcess(
      const std::string& bind = "127.0.0.1", const std::function<void()>& enter = [] {});
  ~StoreProcess();
  StoreProcess(const StoreProcess&) = delete;
  StoreProcess& operator=(const StoreProcess&) = delete;

  [[nodiscard]] StoreOptions options() const { return options_; }

 private:
  pid_t pid_ = 0;
  StoreOptions options_;
};

// tcp, ucx: every rank is a host of its own, on the loopback interface. mixed: rank 0 is alone, the
// others are two on a host.
enum class Kind { loopback, shm, tcp, ucx, mixed };
std::string name_of(Kind kind);
// Those that this build has.
std::vector<Kind> kinds();

// Runs body on every rank of a world; a test fails when one of them throws or fails.
void run_world(Kind kind, int size, const std::function<void(Engine&)>& body,
               const EngineOptions& options = {}, Seconds limit = Seconds(100));

// Two workers of three make their engines, giving up soon: both must name the absent third.
void expect_absent_named(const std::function<std::unique_ptr<Engine>(Rank rank)>& make);

}  // namespace riffle::test
