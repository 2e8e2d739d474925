#include "engine/liveness.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/blocked_signals.h"
#include "riffle/error.h"

namespace riffle::engine {

namespace {

// A peer that has not answered by then learns from our silence.
constexpr auto goodbye_to_neighbours = std::chrono::milliseconds(500);
// Of the failure timeout: more than a few lost packets apart from the whole.
constexpr double most_of_it = 0.7;

int open_pidfd(int pid) {
  return pid == 0 ? -1 : static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}

}  // namespace

Liveness::Liveness(Rank self, std::vector<SegmentHeader*> headers, const std::vector<int>& pids,
                   Beacon* beacon, const EngineOptions& options, std::function<void()> on_failure)
    : self_(self),
      headers_(std::move(headers)),
      options_(options),
      on_failure_(std::move(on_failure)),
      failed_(headers_.size()),
      beats_(headers_.size()),
      silence_(headers_.size()),
      pidfds_(headers_.size(), -1),
      beacon_(beacon),
      culprits_(headers_.size()),
      deaf_(headers_.size()),
      joined_(beacon == nullptr) {
  if (!(options_.heartbeat_interval > Seconds(0)) ||
      !(options_.failure_timeout >= 2 * options_.heartbeat_interval) ||
      options_.failure_timeout > std::chrono::hours(24))
    usage_error(
        "failure_timeout {} must be at least twice heartbeat_interval {}, which must be positive, "
        "and at most a day",
        print(options_.failure_timeout), print(options_.heartbeat_interval));
  for (auto& failed : failed_) failed.store(alive);
  for (auto& culprit : culprits_) culprit.store(-1);
  for (std::size_t r = 0; r < pids.size(); ++r) {
    if (static_cast<Rank>(r) == self_) continue;
    pidfds_[r] = open_pidfd(pids[r]);
    if (pidfds_[r] < 0 && pids[r] != 0 && errno == ESRCH)
      failed_[r].store(static_cast<std::uint8_t>(CommFailure::died));
  }
  if (beacon_ != nullptr) {
    // Ten packets of a timeout may get lost, and a peer that has ended and has no connection to us
    // is asked for soon enough to be missed in time. More would only take cores and the link's
    // queue.
    const Seconds apart = std::min<Seconds>(options_.failure_timeout / 10, milliseconds(250));
    beats_between_beacons_ = std::max(1, static_cast<int>(apart / options_.heartbeat_interval));
  }
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  RIFFLE_CHECK(stop_fd_ >= 0);
  const BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
}

void Liveness::stop() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(stop_fd_, &one, sizeof one);
  thread_.join();
}

void Liveness::leave() {
  stop();
  if (beacon_ != nullptr) beacon_->leave(Clock::now() + goodbye_to_neighbours);
}

Liveness::~Liveness() {
  stop();
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
  if (deaf_[static_cast<std::size_t>(rank)].load())
    return fmt::format("it has not heard this rank for {}", print(options_.failure_timeout));
  if (failure(rank) == CommFailure::frozen)
    return fmt::format("no heartbeat for {}", print(options_.failure_timeout));
  return "";
}

void Liveness::mark_heard(Rank rank) {
  headers_[static_cast<std::size_t>(rank)]->beats.fetch_add(1, std::memory_order_release);
}

void Liveness::mark_failed(Rank rank, CommFailure failure) {
  if (declare(rank, failure)) on_failure_();
}

void Liveness::mark_left(Rank rank, Rank culprit) {
  culprits_[static_cast<std::size_t>(rank)].store(culprit);
  headers_[static_cast<std::size_t>(rank)]->left.store(1, std::memory_order_release);
  on_failure_();
}

bool Liveness::declare(Rank rank, CommFailure failure) {
  std::uint8_t expected = alive;
  return failed_[static_cast<std::size_t>(rank)].compare_exchange_strong(
      expected, static_cast<std::uint8_t>(failure));
}

void Liveness::run() {
  const auto interval = std::chrono::duration_cast<Clock::duration>(options_.heartbeat_interval);
  Deadline last = Clock::now();
  Deadline next = last;
  while (true) {
    if (last >= next) {
      beat();
      next = last + interval;
    }
    bool found = sleep(next);
    pollfd stop{.fd = stop_fd_, .events = POLLIN, .revents = 0};
    if (poll(&stop, 1, 0) > 0) return;
    const Deadline now = Clock::now();
    if (now - next > options_.failure_timeout / 2) stopped_until_ = now;
    if (!frozen_.load()) {
      found |= listen();
      found |= check_hearts(now - last);
    }
    last = now;
    if (headers_[static_cast<std::size_t>(self_)]->fenced.load(std::memory_order_acquire) != 0)
      found |= declare(self_, CommFailure::aborted);
    if (!found) continue;
    // Whom we no longer hear learns that first, before our calls give up and blame it elsewhere.
    if (beacon_ != nullptr && !frozen_.load()) beacon_->beat();
    on_failure_();
  }
}

void Liveness::beat() {
  if (frozen_.load()) return;
  headers_[static_cast<std::size_t>(self_)]->beats.fetch_add(1, std::memory_order_release);
  if (beacon_ != nullptr && rounds_++ % static_cast<std::uint64_t>(beats_between_beacons_) == 0)
    beacon_->beat();
}

// Sleeps until then, or until a peer's process ends, a packet comes or we are to stop.
bool Liveness::sleep(Deadline until) {
  std::vector<pollfd> watched{{.fd = stop_fd_, .events = POLLIN, .revents = 0}};
  for (std::size_t r = 0; r < pidfds_.size(); ++r)
    watched.push_back(
        {.fd = failed_[r].load() == alive ? pidfds_[r] : -1, .events = POLLIN, .revents = 0});
  const bool hears = beacon_ != nullptr && !frozen_.load();
  watched.push_back({.fd = hears ? beacon_->fd() : -1, .events = POLLIN, .revents = 0});
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  if (poll(watched.data(), watched.size(), static_cast<int>(std::max<long>(0, left))) <= 0)
    return false;
  bool found = false;
  for (std::size_t r = 0; r < pidfds_.size(); ++r)
    if (watched[r + 1].revents != 0) found |= declare(static_cast<Rank>(r), CommFailure::died);
  return found;
}

bool Liveness::listen() {
  if (beacon_ == nullptr) return false;
  bool found = false;
  beacon_->listen(
      [&](Rank rank) {
        if (headers_[static_cast<std::size_t>(rank)]->left.load() == 0)
          found |= declare(rank, CommFailure::died);
      },
      [&](Rank rank) { found |= heard_as_failed_by(rank); });
  return found;
}

// A rank that we hear counts us as failed. Either we were stopped for so long, and it is right; or
// the way from us to it is cut, and then there is no talking to it.
bool Liveness::heard_as_failed_by(Rank rank) {
  if (Clock::now() - stopped_until_ < 2 * options_.failure_timeout) {
    std::uint32_t nobody = 0;
    headers_[static_cast<std::size_t>(self_)]->fenced.compare_exchange_strong(
        nobody, static_cast<std::uint32_t>(rank) + 1);
    return true;
  }
  if (!declare(rank, CommFailure::frozen)) return false;
  deaf_[static_cast<std::size_t>(rank)].store(true);
  return true;
}

// Silence is counted in time during which this thread ran: when the whole machine was asleep, or we
// were stopped ourselves, nobody else is to blame for it.
void Liveness::listen_to_hearts(std::chrono::nanoseconds passed) {
  const auto interval =
      std::chrono::duration_cast<std::chrono::nanoseconds>(options_.heartbeat_interval);
  passed = std::min(passed, 2 * interval);
  for (std::size_t r = 0; r < headers_.size(); ++r) {
    const std::uint64_t beats = headers_[r]->beats.load(std::memory_order_acquire);
    if (beats == 0 && !joined_.load()) continue;
    silence_[r] = beats != beats_[r] ? std::chrono::nanoseconds(0) : silence_[r] + passed;
    beats_[r] = beats;
  }
}

// Its heart should beat.
bool Liveness::is_expected(std::size_t rank) const {
  return static_cast<Rank>(rank) != self_ && failed_[rank].load() == alive &&
         headers_[rank]->left.load(std::memory_order_acquire) == 0;
}

// Nobody of another host has been heard for most of the timeout.
bool Liveness::is_cut_off() const {
  if (beacon_ == nullptr) return false;
  for (std::size_t r = 0; r < headers_.size(); ++r)
    if (is_expected(r) && beacon_->reaches(static_cast<Rank>(r)) &&
        silence_[r] < most_of_it * options_.failure_timeout)
      return false;
  return true;
}

// Who is cut off gives up all of the other hosts at once. Their hearts beat at times of their own:
// one by one, the first would be blamed before the last has learned that it is not heard.
bool Liveness::check_hearts(std::chrono::nanoseconds passed) {
  listen_to_hearts(passed);
  const auto is_silent = [&](std::size_t r, double share) {
    return is_expected(r) && silence_[r] >= share * options_.failure_timeout;
  };
  bool found = false;
  for (std::size_t r = 0; r < headers_.size(); ++r) found |= is_silent(r, 1);
  if (!found) return false;
  const bool cut_off = is_cut_off();
  for (std::size_t r = 0; r < headers_.size(); ++r) {
    const bool far = beacon_ != nullptr && beacon_->reaches(static_cast<Rank>(r));
    if (!is_silent(r, cut_off && far ? most_of_it : 1)) continue;
    declare(static_cast<Rank>(r), CommFailure::frozen);
    // So that it stops, should it ever wake up.
    std::uint32_t nobody = 0;
    headers_[r]->fenced.compare_exchange_strong(nobody, static_cast<std::uint32_t>(self_) + 1);
  }
  return true;
}

}  // namespace riffle::engine
