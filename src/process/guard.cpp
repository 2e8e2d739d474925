#include "process/guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace riffle::process {

namespace {

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&set, number);
  return set;
}

// The parent of a process; 0 when it has gone.
pid_t parent_of(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text);
  // "pid (name) state parent ...", where a name may contain anything.
  const std::size_t name_end = text.rfind(')');
  int parent = 0;
  char state = 0;
  if (name_end == std::string::npos) return 0;
  if (std::sscanf(text.c_str() + name_end + 1, " %c %d", &state, &parent) != 2) return 0;
  return parent;
}

void kill_children() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    // A child of ours that we have not reaped: its number cannot be another process's.
    if (parent_of(entry.path()) == getpid()) kill(std::stoi(name), SIGKILL);
  }
}

Guard wait_for_inner(pid_t inner) {
  const sigset_t watched = watched_signals();
  for (;;) {
    int status = 0;
    if (waitpid(inner, &status, WNOHANG) == inner) {
      end_all_children(std::chrono::seconds(10));
      Guard result;
      result.outer = true;
      result.killed = WIFSIGNALED(status);
      result.exit_code = result.killed ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      return result;
    }
    siginfo_t signal{};
    if (sigwaitinfo(&watched, &signal) > 0 && signal.si_signo != SIGCHLD)
      kill(inner, signal.si_signo);
  }
}

}  // namespace

Guard guard_process() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error(fmt::format("cannot start: {}", std::strerror(errno)));
  Descriptor read_end(ends[0]);
  const Descriptor write_end(ends[1]);
  const sigset_t watched = watched_signals();
  sigprocmask(SIG_BLOCK, &watched, nullptr);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::fflush(nullptr);
  const pid_t inner = fork();
  if (inner < 0) throw std::runtime_error(fmt::format("cannot start: {}", std::strerror(errno)));
  if (inner > 0) {
    read_end.reset();
    return wait_for_inner(inner);
  }
  // A group of its own: what the terminal sends comes through the outer process alone, once. From
  // such a group it may write to a terminal only when this signal is ignored.
  setpgid(0, 0);
  signal(SIGTTOU, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  Guard result;
  result.lifeline = std::move(read_end);
  return result;
}

void end_with_outer(const Guard& guard) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pollfd outer{.fd = guard.lifeline.get(), .events = POLLIN, .revents = 0};
  if (poll(&outer, 1, 0) > 0) _exit(1);  // it ended before we asked to be told
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) signal(number, SIG_DFL);
  const sigset_t watched = watched_signals();
  sigprocmask(SIG_UNBLOCK, &watched, nullptr);
}

bool end_all_children(std::chrono::milliseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  for (;;) {
    const pid_t ended = waitpid(-1, nullptr, WNOHANG);
    if (ended > 0) continue;
    if (ended < 0 && errno == ECHILD) return true;
    if (std::chrono::steady_clock::now() > deadline) return false;
    kill_children();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace riffle::process
