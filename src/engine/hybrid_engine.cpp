#include "engine/hybrid_engine.h"

#include <algorithm>

#include "riffle/error.h"

namespace riffle::engine {

namespace {

// A sleeper looks around this often, whatever happens to its bell.
constexpr auto longest_sleep = std::chrono::milliseconds(100);

// Peers take our last messages at once, or when they run again, or are found failed by then; where
// packets are lost, TCP may have to send the last ones several times, later each time.
Seconds longest_goodbye(const EngineOptions& options) {
  return options.failure_timeout + Seconds(5);
}

Group ranks_of_host(const HybridWorld& world) {
  std::vector<Rank> ranks;
  for (std::size_t r = 0; r < world.hosts.size(); ++r)
    if (world.segments[r] != nullptr &&
        world.hosts[r] == world.hosts[static_cast<std::size_t>(world.self)])
      ranks.push_back(static_cast<Rank>(r));
  return Group(std::move(ranks));
}

std::vector<Mailbox::Peer> peers_of(const HybridWorld& world, const Layout& layout) {
  const auto ring = [&](Rank from, Rank to) {
    return reinterpret_cast<Ring*>(world.segments[static_cast<std::size_t>(from)]->base() +
                                   layout.ring(to));
  };
  std::vector<Mailbox::Peer> peers(world.segments.size());
  for (Rank r = 0; r < layout.size; ++r) {
    const std::size_t at = static_cast<std::size_t>(r);
    if (world.segments[at] != nullptr)
      peers[at] = {.out = ring(world.self, r), .in = ring(r, world.self), .address = {}};
    else
      peers[at].address = world.addresses[at];
  }
  return peers;
}

}  // namespace

HybridEngine::HybridEngine(HybridWorld world)
    : world_(std::move(world)),
      layout_{.size = size()},
      host_ranks_(ranks_of_host(world_)),
      crowded_(engine::crowded(host_ranks_.size())),
      heap_(*world_.segments[static_cast<std::size_t>(world_.self)], layout_.heap()) {
  std::vector<SegmentHeader*> headers;
  headers.reserve(world_.segments.size());
  for (const auto& each : world_.segments)
    headers.push_back(each != nullptr ? &each->header() : &far_.emplace_back());
  if (world_.beacon != nullptr) world_.beacon->open(world_.beacons, headers);
  liveness_ = std::make_unique<Liveness>(world_.self, headers, world_.pids, world_.beacon.get(),
                                         world_.options, [this] { wake_own(); });
  mailbox_ = std::make_unique<Mailbox>(
      world_.self, peers_of(world_, layout_), world_.network.get(),
      Mailbox::Callbacks{
          .wake = [this](Rank rank) { wake(rank); },
          .failed = [this](Rank rank) { return failure(rank).has_value(); },
          .heard = [this](Rank rank) { liveness_->mark_heard(rank); },
          .left = [this](Rank rank, Rank culprit) { liveness_->mark_left(rank, culprit); },
          .lost = [this](Rank rank) { liveness_->mark_failed(rank, CommFailure::died); }});
  if (world_.network == nullptr) return;
  pump_ = std::make_unique<Pump>(*mailbox_, world_.network->event_fd(), host_ranks_.size() > 1);
  running_.store(pump_.get());
}

HybridEngine::~HybridEngine() {
  leave();
  running_.store(nullptr);
  pump_.reset();
}

// What was sent must be there before anybody hears that we are gone.
void HybridEngine::leave() {
  if (std::exchange(has_left_, true)) return;
  Rank culprit = -1;
  for (Rank rank = 0; rank < size() && culprit < 0; ++rank)
    if (rank != world_.self && liveness_->broken(rank)) culprit = rank;
  mailbox_->leave(culprit, after(longest_goodbye(world_.options)));
  segment(world_.self).header().left.store(1, std::memory_order_release);
  for (const auto& each : world_.segments) {
    if (each == nullptr) continue;
    for (Bell& bell : each->header().bells) bell.ring();
    each->header().mail.ring();
  }
  if (world_.beacon != nullptr) liveness_->leave();
}

bool HybridEngine::near(Rank rank) const {
  return world_.segments[static_cast<std::size_t>(rank)] != nullptr;
}

void HybridEngine::wake(Rank rank) {
  if (near(rank)) segment(rank).header().mail.ring();
  if (rank != world_.self) return;
  if (Pump* pump = running_.load()) pump->wake();
}

void HybridEngine::wake_own() {
  SegmentHeader& own = segment(world_.self).header();
  for (Bell& bell : own.bells) bell.ring();
  own.mail.ring();
  if (Pump* pump = running_.load()) pump->wake();
}

const Segment& HybridEngine::segment(Rank rank) const {
  return *world_.segments[static_cast<std::size_t>(rank)];
}

Rank HybridEngine::checked(Rank rank) const {
  if (rank < 0 || rank >= size()) usage_error("rank {} is outside a world of {}", rank, size());
  return rank;
}

const std::string& HybridEngine::host(Rank rank) const {
  return world_.hosts[static_cast<std::size_t>(checked(rank))];
}

std::optional<CommFailure> HybridEngine::failure(Rank rank) const {
  return liveness_->failure(checked(rank));
}

void HybridEngine::mark_failed(Rank rank, CommFailure failure) {
  liveness_->mark_failed(checked(rank), failure);
}

void HybridEngine::fail(Rank rank, CommFailure failure, const CommContext& context,
                        std::string_view detail) const {
  throw CommError(failure, rank, world_.hosts[static_cast<std::size_t>(rank)], context, detail);
}

void HybridEngine::throw_failed(std::span<const Rank> ranks, const CommContext& context) const {
  for (const Rank rank : ranks) {
    const auto failed = failure(rank);
    if (!failed) continue;
    // A rank that left because of another is not the one to look at.
    const Rank culprit = liveness_->culprit(rank);
    if (culprit >= 0 && culprit != world_.self && context.group != nullptr &&
        context.group->contains(culprit))
      fail(culprit, failure(culprit).value_or(CommFailure::died), context,
           fmt::format("so rank {} said and left", rank));
    fail(rank, *failed, context, liveness_->detail(rank));
  }
  if (const auto failed = failure(world_.self))
    fail(world_.self, *failed, context, liveness_->detail(world_.self));
}

// `also` are watched besides how.watch; the first of them is named when time runs out.
template <typename Sleep>
void HybridEngine::wait_on(const Sleep& sleep, Ready ready, std::span<const Rank> also,
                           const Wait& how) {
  const auto failed = [&](Rank rank) { return failure(rank).has_value(); };
  const auto broke = [&](Rank rank) { return liveness_->broken(rank); };
  while (true) {
    const bool broken = std::any_of(also.begin(), also.end(), failed) ||
                        std::any_of(how.watch.begin(), how.watch.end(), broke) ||
                        failed(world_.self);
    const auto left = how.deadline - Clock::now();
    if (ready()) return;  // after the looks above: what came before a failure counts
    if (broken) {
      throw_failed(also, how.context);
      for (const Rank rank : how.watch)
        if (broke(rank)) throw_failed(std::span(&rank, 1), how.context);
    }
    if (left <= Clock::duration::zero())
      fail(also.empty() ? how.watch.front() : also.front(), CommFailure::timed_out, how.context,
           "");
    sleep(std::min<std::chrono::nanoseconds>(left, longest_sleep));
  }
}

// ---------------------------------------------------------------------------- messages

Request HybridEngine::send(Rank to, Tag tag, std::span<const std::byte> data) {
  return Request(mailbox_->send(checked(to), tag, data));
}

Request HybridEngine::receive(Rank from, Tag tag, std::span<std::byte> data) {
  return Request(mailbox_->receive(checked(from), tag, data));
}

// Whether the request is done, throwing where it ended otherwise; it is empty afterwards.
bool HybridEngine::finish(Request& request, const CommContext& context) {
  const Mailbox::State state = mailbox_->take(request.id());
  if (state.outcome == Mailbox::Outcome::pending) {
    if (!failure(state.peer)) return false;
    // It may have come between our look and the failure.
    mailbox_->progress();
    if (!mailbox_->is_pending(request.id())) return finish(request, context);
    cancel(request);
    throw_failed(std::span(&state.peer, 1), context);
  }
  request = Request();
  if (state.outcome == Mailbox::Outcome::wrong_size)
    fail(state.peer, CommFailure::mismatch, context,
         fmt::format("it sent {} bytes where {} were expected", state.arrived, state.expected));
  return true;
}

bool HybridEngine::test(Request& request) {
  if (request.empty()) return true;
  mailbox_->progress();
  return finish(request, {.operation = "test"});
}

void HybridEngine::wait(Request& request, const Wait& how) {
  if (!request.empty()) wait_any(std::span(&request, 1), how);
}

std::size_t HybridEngine::wait_any(std::span<Request> requests, const Wait& how) {
  std::vector<Rank> peers;
  for (const Request& request : requests)
    if (!request.empty()) peers.push_back(mailbox_->peer(request.id()));
  if (peers.empty()) usage_error("wait_any: no request is left to wait for");
  const auto ready = [&] {
    mailbox_->progress();
    return std::any_of(requests.begin(), requests.end(), [&](const Request& request) {
      return !request.empty() && !mailbox_->is_pending(request.id());
    });
  };
  try {
    wait_for_mail(ready, peers, how);
    for (std::size_t i = 0; i < requests.size(); ++i)
      if (!requests[i].empty() && !mailbox_->is_pending(requests[i].id()) &&
          finish(requests[i], how.context))
        return i;
  } catch (...) {
    for (Request& request : requests) cancel(request);
    throw;
  }
  RIFFLE_CHECK(false);
  return 0;
}

void HybridEngine::await_any(std::span<const Request> requests, const Wait& how) {
  RIFFLE_CHECK(!how.watch.empty());
  const auto ready = [&] {
    mailbox_->progress();
    return std::any_of(requests.begin(), requests.end(), [&](const Request& request) {
      return !request.empty() && (!mailbox_->is_pending(request.id()) ||
                                  failure(mailbox_->peer(request.id())).has_value());
    });
  };
  wait_for_mail(ready, {}, how);
}

void HybridEngine::cancel(Request& request) noexcept {
  if (!request.empty()) mailbox_->cancel(request.id());
  request = Request();
}

// ---------------------------------------------------------------------------- memory

Buffer HybridEngine::allocate(std::size_t bytes) {
  if (bytes == 0) return {};
  const std::size_t offset = heap_.allocate(bytes);
  return {this, {segment(world_.self).base() + offset, bytes}};
}

void HybridEngine::release(std::span<std::byte> bytes) noexcept {
  heap_.release(static_cast<std::size_t>(bytes.data() - segment(world_.self).base()));
}

std::byte* HybridEngine::board(Rank rank) {
  RIFFLE_CHECK(host_ranks_.contains(rank));
  return segment(rank).base() + Layout::board();
}

std::optional<HostMemory::Location> HybridEngine::locate(const std::byte* data,
                                                         std::size_t bytes) const {
  const Segment& own = segment(world_.self);
  const std::size_t end = own.header().end.load(std::memory_order_relaxed);
  if (data < own.base() || data >= own.base() + end) return std::nullopt;
  const std::size_t offset = static_cast<std::size_t>(data - own.base());
  if (!heap_.holds(offset, bytes)) return std::nullopt;
  return offset;
}

std::byte* HybridEngine::view(Rank rank, Location location, std::size_t bytes) {
  if (!near(checked(rank)))
    fail(rank, CommFailure::mismatch, {.operation = "view"}, "it is on another host");
  const Segment& theirs = segment(rank);
  const std::size_t end = theirs.header().end.load(std::memory_order_acquire);
  if (location < layout_.heap() || location > end || bytes > end - location)
    fail(rank, CommFailure::mismatch, {.operation = "view"},
         fmt::format("it has no {} bytes at {}", bytes, location));
  return theirs.base() + location;
}

// ---------------------------------------------------------------------------- waiting

void HybridEngine::ring(std::span<const Rank> ranks, int bell) {
  full_fence();
  for (const Rank rank : ranks)
    segment(rank).header().bells[static_cast<std::size_t>(bell)].ring_after_fence();
}

void HybridEngine::wait(int bell, Ready ready, const Wait& how) {
  RIFFLE_CHECK(!how.watch.empty());
  if (look(Patience::of(crowded_ || how.background), ready)) return;
  Bell& rung = segment(world_.self).header().bells[static_cast<std::size_t>(bell)];
  wait_on([&](std::chrono::nanoseconds limit) { rung.sleep(ready, limit); }, ready, {}, how);
}

void HybridEngine::wait_for_mail(Ready ready, std::span<const Rank> also, const Wait& how) {
  Bell& mail = segment(world_.self).header().mail;
  const Pump::Busy busy(pump_.get());
  const bool patient = !crowded_ && !how.background;
  if (pump_ != nullptr ? look_for_a_moment(patient, ready) : look(Patience::of(!patient), ready))
    return;
  const auto sleep = [&](std::chrono::nanoseconds limit) {
    pump_ != nullptr ? pump_->sleep(mail, ready, limit) : mail.sleep(ready, limit);
  };
  wait_on(sleep, ready, also, how);
}

}  // namespace riffle::engine
