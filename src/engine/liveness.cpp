#include "engine/liveness.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "riffle/error.h"

namespace riffle {

namespace {

int open_pidfd(int pid) {
  return pid == 0 ? -1 : static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}

// Signals are for the program's own threads.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

Liveness::Liveness(Rank self, std::vector<SegmentHeader*> headers, const std::vector<int>& pids,
                   const EngineOptions& options, std::function<void()> on_failure)
    : self_(self),
      headers_(std::move(headers)),
      options_(options),
      on_failure_(std::move(on_failure)),
      failed_(headers_.size()),
      beats_(headers_.size()),
      silence_(headers_.size()),
      pidfds_(headers_.size(), -1) {
  if (options_.heartbeat_interval <= Seconds(0) ||
      options_.failure_timeout < 2 * options_.heartbeat_interval)
    usage_error(
        "failure_timeout {} must be at least twice heartbeat_interval {}, which must be positive",
        print(options_.failure_timeout), print(options_.heartbeat_interval));
  for (auto& failed : failed_) failed.store(alive);
  for (std::size_t r = 0; r < pids.size(); ++r) {
    if (static_cast<Rank>(r) == self_) continue;
    pidfds_[r] = open_pidfd(pids[r]);
    if (pidfds_[r] < 0 && pids[r] != 0 && errno == ESRCH)
      failed_[r].store(static_cast<std::uint8_t>(CommFailure::died));
  }
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  RIFFLE_CHECK(stop_fd_ >= 0);
  const BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
}

Liveness::~Liveness() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(stop_fd_, &one, sizeof one);
  thread_.join();
  for (const int fd : pidfds_)
    if (fd >= 0) close(fd);
  close(stop_fd_);
}

std::optional<CommFailure> Liveness::failure(Rank rank) const {
  const std::uint8_t failed =
      failed_[static_cast<std::size_t>(rank)].load(std::memory_order_acquire);
  if (failed != alive) return static_cast<CommFailure>(failed);
  const SegmentHeader& header = *headers_[static_cast<std::size_t>(rank)];
  if (rank == self_ && header.fenced.load(std::memory_order_acquire) != 0)
    return CommFailure::aborted;
  if (rank != self_ && header.left.load(std::memory_order_acquire) != 0) return CommFailure::died;
  return std::nullopt;
}

bool Liveness::broken(Rank rank) const {
  return failure(rank).has_value() &&
         (rank == self_ || headers_[static_cast<std::size_t>(rank)]->left.load() == 0);
}

std::string Liveness::detail(Rank rank) const {
  const auto& header = *headers_[static_cast<std::size_t>(rank)];
  if (rank == self_ && header.fenced.load() != 0)
    return fmt::format("this rank was silent and rank {} has declared it failed",
                       header.fenced.load() - 1);
  if (header.left.load() != 0) return "it has left the job";
  if (failure(rank) == CommFailure::frozen)
    return fmt::format("no heartbeat for {}", print(options_.failure_timeout));
  return "";
}

void Liveness::mark_failed(Rank rank, CommFailure failure) {
  if (declare(rank, failure)) on_failure_();
}

bool Liveness::declare(Rank rank, CommFailure failure) {
  std::uint8_t expected = alive;
  return failed_[static_cast<std::size_t>(rank)].compare_exchange_strong(
      expected, static_cast<std::uint8_t>(failure));
}

void Liveness::run() {
  const int interval = std::max(
      1, static_cast<int>(
             std::chrono::duration_cast<std::chrono::milliseconds>(options_.heartbeat_interval)
                 .count()));
  auto last = Clock::now();
  while (true) {
    auto& own = *headers_[static_cast<std::size_t>(self_)];
    if (!frozen_.load()) own.beats.fetch_add(1, std::memory_order_release);
    pollfd stop{.fd = stop_fd_, .events = POLLIN, .revents = 0};
    bool found = check_processes(interval);
    if (poll(&stop, 1, 0) > 0) return;
    const auto now = Clock::now();
    if (!frozen_.load()) found |= check_hearts(now - last);
    last = now;
    if (own.fenced.load(std::memory_order_acquire) != 0)
      found |= declare(self_, CommFailure::aborted);
    if (found) on_failure_();
  }
}

// Sleeps for one interval, or until a peer's process ends or we are to stop.
bool Liveness::check_processes(int timeout_milliseconds) {
  std::vector<pollfd> watched{{.fd = stop_fd_, .events = POLLIN, .revents = 0}};
  for (std::size_t r = 0; r < pidfds_.size(); ++r)
    watched.push_back(
        {.fd = failed_[r].load() == alive ? pidfds_[r] : -1, .events = POLLIN, .revents = 0});
  if (poll(watched.data(), watched.size(), timeout_milliseconds) <= 0) return false;
  bool found = false;
  for (std::size_t r = 0; r < pidfds_.size(); ++r)
    if (watched[r + 1].revents != 0) found |= declare(static_cast<Rank>(r), CommFailure::died);
  return found;
}

// Silence is counted in time during which this thread ran: when the whole machine was asleep, or we
// were stopped ourselves, nobody else is to blame for it.
bool Liveness::check_hearts(std::chrono::nanoseconds passed) {
  const auto interval =
      std::chrono::duration_cast<std::chrono::nanoseconds>(options_.heartbeat_interval);
  passed = std::min(passed, 2 * interval);
  bool found = false;
  for (std::size_t r = 0; r < headers_.size(); ++r) {
    if (static_cast<Rank>(r) == self_ || failed_[r].load() != alive) continue;
    const std::uint64_t beats = headers_[r]->beats.load(std::memory_order_acquire);
    silence_[r] = beats != beats_[r] ? std::chrono::nanoseconds(0) : silence_[r] + passed;
    beats_[r] = beats;
    if (silence_[r] < options_.failure_timeout) continue;
    found |= declare(static_cast<Rank>(r), CommFailure::frozen);
    // So that it stops, should it ever wake up.
    std::uint32_t nobody = 0;
    headers_[r]->fenced.compare_exchange_strong(nobody, static_cast<std::uint32_t>(self_) + 1);
  }
  return found;
}

}  // namespace riffle
