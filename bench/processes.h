// Forked worker processes for benchmarks that need real ones.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <vector>

namespace riffle {

// Runs body(rank) in a process for each rank; whoever is left is killed at the end.
class Processes {
 public:
  Processes(int count, const std::function<void(int)>& body) {
    std::fflush(nullptr);
    for (int rank = 0; rank < count; ++rank) {
      const pid_t pid = fork();
      if (pid == 0) _exit(run(rank, body));
      pids_.push_back(pid);
    }
  }
  ~Processes() {
    for (const pid_t pid : pids_) kill(pid, SIGKILL);
    wait();
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  void wait() {
    for (const pid_t pid : pids_) waitpid(pid, nullptr, 0);
    pids_.clear();
  }
  void send_signal(int rank, int number) const {
    kill(pids_[static_cast<std::size_t>(rank)], number);
  }

 private:
  static int run(int rank, const std::function<void(int)>& body) {
    try {
      body(rank);
      std::fflush(nullptr);
      return 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "worker %d: %s\n", rank, error.what());
      return 1;
    }
  }
  std::vector<pid_t> pids_;
};

}  // namespace riffle
