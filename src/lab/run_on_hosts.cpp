#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "lab/transfers.h"

namespace riffle::lab {

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void live(const Hosts& hosts, int host, int index, pid_t parent,
                       const std::function<void(int)>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  try {
    hosts.enter_network(host);
    body(index);
    _exit(0);
  } catch (const std::exception& error) {
    fmt::print(stderr, "lab: on host {}: {}\n", host, error.what());
    _exit(1);
  }
}

}  // namespace

void run_on_hosts(const Hosts& hosts, const std::vector<int>& which,
                  const std::function<void(int index)>& body, Seconds limit) {
  std::fflush(nullptr);
  const pid_t parent = getpid();
  std::vector<pid_t> children;
  for (std::size_t i = 0; i < which.size(); ++i) {
    const pid_t child = fork();
    if (child == 0) live(hosts, which[i], static_cast<int>(i), parent, body);
    children.push_back(child);
  }
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
  bool good = true;
  while (!children.empty()) {
    const auto ended = std::erase_if(children, [&](pid_t child) {
      int status = 0;
      if (waitpid(child, &status, WNOHANG) != child) return false;
      good = good && status == 0;
      return true;
    });
    if (ended > 0) continue;
    if (!good || Clock::now() > deadline) {
      for (const pid_t child : children) kill(child, SIGKILL);
      for (const pid_t child : children) waitpid(child, nullptr, 0);
      throw std::runtime_error(good ? fmt::format("lab: not done in {}", print(limit))
                                    : "lab: a host has failed");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace riffle::lab
