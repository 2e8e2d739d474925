#include "bench_contender.h"

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>

#include "riffle/error.h"

namespace riffle::cli {

namespace {

constexpr timeval longest_answer{.tv_sec = 300, .tv_usec = 0};

int listen_on(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(),
              std::min(name.size(), sizeof address.sun_path - 1));
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  RIFFLE_CHECK(fd >= 0);
  RIFFLE_CHECK_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), length), 0);
  RIFFLE_CHECK_EQ(listen(fd, 256), 0);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &longest_answer, sizeof longest_answer);
  return fd;
}

bool succeeds(const std::string& command) {
  return std::system((command + " > /dev/null 2>&1").c_str()) == 0;
}

}  // namespace

const std::vector<std::string>& BenchContender::names() {
  static const std::vector<std::string> all{"riffle", "riffle-foreign", "openmpi", "gloo"};
  return all;
}

std::string BenchContender::missing(const std::string& name, const BenchPrograms& programs) {
  const auto built = [&](const char* program) {
    return std::filesystem::exists(programs.folder + "/" + program);
  };
  if (name == "gloo") {
    if (!built("allreduce_gloo.py")) return "its worker is not beside the command";
    return succeeds(programs.python + " -c 'import torch.distributed'")
               ? ""
               : fmt::format("{} has no torch (see --python)", programs.python);
  }
  if (name == "openmpi") {
    if (!built("allreduce_openmpi")) return "its worker was not built (no mpicxx)";
    return succeeds("mpirun --version") ? "" : "there is no mpirun";
  }
  return built("allreduce_riffle") ? "" : "its worker is not beside the command";
}

BenchContender::BenchContender(const std::string& name, int workers, const BenchPrograms& programs)
    : name_(name) {
  const std::string socket = fmt::format("riffle-bench-{}-{}-{}", getpid(), name, workers);
  const int listener = listen_on(socket);
  if (name == "openmpi") {
    start({"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n",
           std::to_string(workers), programs.folder + "/allreduce_openmpi", socket});
  } else {
    const std::string store =
        fmt::format("file://{}/{}", std::filesystem::temp_directory_path().string(), socket);
    for (int rank = 0; rank < workers; ++rank) {
      const std::string r = std::to_string(rank);
      const std::string n = std::to_string(workers);
      if (name == "gloo")
        start({programs.python, programs.folder + "/allreduce_gloo.py", socket, r, n, store});
      else
        start({programs.folder + "/allreduce_riffle", socket, r, n, socket,
               name == "riffle" ? "engine" : "foreign"});
    }
  }
  accept_workers(listener, workers);
}

BenchContender::~BenchContender() {
  workers_.clear();  // at the end of their input they finish
  for (const pid_t process : processes_) {
    for (int tries = 0; tries < 500 && waitpid(process, nullptr, WNOHANG) == 0; ++tries) {
      if (tries == 200) kill(process, SIGTERM);
      if (tries == 400) kill(process, SIGKILL);
      usleep(10'000);
    }
  }
}

void BenchContender::start(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& each : command) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", 0, 0);
  posix_spawn_file_actions_adddup2(&files, 2, 1);  // standard output is for results
  pid_t process = 0;
  const int error =
      posix_spawnp(&process, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) usage_error("cannot start {}: {}", command[0], std::strerror(error));
  processes_.push_back(process);
}

void BenchContender::accept_workers(int listener, int workers) {
  workers_.resize(static_cast<std::size_t>(workers));
  for (int joined = 0; joined < workers; ++joined) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      close(listener);
      throw std::runtime_error(fmt::format("{}: {} of {} workers started", name_, joined, workers));
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &longest_answer, sizeof longest_answer);
    const int other = dup(fd);
    RIFFLE_CHECK(other >= 0);
    Connection connection{File(fdopen(fd, "r")), File(fdopen(other, "w"))};
    int rank = -1;
    if (std::fscanf(connection.in.get(), "%d", &rank) != 1 || rank < 0 || rank >= workers)
      throw std::runtime_error(fmt::format("{}: a worker did not say its rank", name_));
    workers_[static_cast<std::size_t>(rank)] = std::move(connection);
  }
  close(listener);
}

std::vector<Seconds> BenchContender::run(Bytes size, int calls) {
  for (const Connection& worker : workers_) {
    fmt::print(worker.out.get(), "run {} {}\n", size.count, calls);
    std::fflush(worker.out.get());
  }
  std::vector<long long> called(static_cast<std::size_t>(calls), 0);
  std::vector<long long> done(called);
  for (std::size_t rank = 0; rank < workers_.size(); ++rank)
    for (std::size_t call = 0; call < called.size(); ++call) {
      long long before = 0;
      long long after = 0;
      if (std::fscanf(workers_[rank].in.get(), "%lld %lld", &before, &after) != 2)
        throw std::runtime_error(fmt::format(
            "{}: rank {} did not answer, or its sum of {} was wrong", name_, rank, print(size)));
      called[call] = std::max(called[call], before);
      done[call] = std::max(done[call], after);
    }
  std::vector<Seconds> times;
  times.reserve(called.size());
  for (std::size_t call = 0; call < called.size(); ++call)
    times.emplace_back(static_cast<double>(done[call] - called[call]) * 1e-9);
  return times;
}

}  // namespace riffle::cli
