#include "support/emulated_links.h"

#include <algorithm>
#include <thread>

namespace riffle::test {
namespace {

constexpr std::chrono::microseconds kPause{20};

[[noreturn]] void throw_late(const Wait& how) {
  const Rank rank = how.watch.empty() ? 0 : how.watch.front();
  throw CommError(CommFailure::timed_out, rank, "emulated", how.context, {});
}

}  // namespace

void EmulatedLinks::leave(Rank from, Rank to, Tag tag, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  Deadline& free = free_[static_cast<std::size_t>(from)];
  const Seconds transfer = Bytes{static_cast<std::int64_t>(bytes)} / link_.bandwidth;
  free = std::max(free, Clock::now()) + std::chrono::duration_cast<Clock::duration>(transfer);
  arrivals_[{from, to, tag}].push_back(free +
                                       std::chrono::duration_cast<Clock::duration>(link_.latency));
}

std::optional<Deadline> EmulatedLinks::arrival(Rank from, Rank to, Tag tag) {
  const std::scoped_lock lock(mutex_);
  const auto found = arrivals_.find({from, to, tag});
  if (found == arrivals_.end()) return std::nullopt;
  const Deadline arrival = found->second.front();
  found->second.pop_front();
  if (found->second.empty()) arrivals_.erase(found);
  return arrival;
}

Request EmulatedEngine::send(Rank to, Tag tag, std::span<const std::byte> data) {
  links_.leave(rank(), to, tag, data.size());
  const Request request = below_.send(to, tag, data);
  const std::scoped_lock lock(mutex_);
  open_[request.id()] = {};
  return request;
}

Request EmulatedEngine::receive(Rank from, Tag tag, std::span<std::byte> data) {
  const Request request = below_.receive(from, tag, data);
  const std::scoped_lock lock(mutex_);
  open_[request.id()] = {.from = from, .tag = tag};
  return request;
}

bool EmulatedEngine::is_ready(const Request& request) {
  const std::scoped_lock lock(mutex_);
  Open& open = open_.at(request.id());
  if (!open.is_done) {
    Request below = request;
    open.is_done = below_.test(below);
  }
  if (open.from < 0) return open.is_done;
  if (!open.arrival) open.arrival = links_.arrival(open.from, rank(), open.tag);
  return open.is_done && open.arrival && *open.arrival <= Clock::now();
}

bool EmulatedEngine::test(Request& request) {
  if (request.empty()) return true;
  if (!is_ready(request)) return false;
  const std::scoped_lock lock(mutex_);
  open_.erase(request.id());
  request = {};
  return true;
}

void EmulatedEngine::wait(Request& request, const Wait& how) {
  (void)wait_any({&request, 1}, how);
}

std::size_t EmulatedEngine::wait_any(std::span<Request> requests, const Wait& how) {
  while (Clock::now() < how.deadline) {
    for (std::size_t i = 0; i < requests.size(); ++i)
      if (!requests[i].empty() && test(requests[i])) return i;
    std::this_thread::sleep_for(kPause);
  }
  for (Request& request : requests) cancel(request);
  throw_late(how);
}

void EmulatedEngine::await_any(std::span<const Request> requests, const Wait& how) {
  while (Clock::now() < how.deadline) {
    for (const Request& request : requests)
      if (is_ready(request)) return;
    std::this_thread::sleep_for(kPause);
  }
  throw_late(how);
}

void EmulatedEngine::cancel(Request& request) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    const auto found = open_.find(request.id());
    if (found == open_.end()) return;
    const bool is_done = found->second.is_done;
    open_.erase(found);
    if (is_done) request = {};
  }
  below_.cancel(request);
}

}  // namespace riffle::test
