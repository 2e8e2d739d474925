#include "collective/host_lane.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "riffle/error.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace riffle::collective {

namespace {

// ThreadSanitizer sees one process. Where another rank stands between two threads of ours (one
// wrote to its memory in a call, the other reads there in a later call on another lane), it must be
// told: `place` stands for what passes between us and that rank.
#if defined(__SANITIZE_THREAD__)
void told(void* place) {
  __tsan_release(place);
}
void heard(void* place) {
  __tsan_acquire(place);
}
#else
void told(const void* /*place*/) {}
void heard(const void* /*place*/) {}
#endif

std::uint64_t digest_of(const CallHeader& header) {
  std::array<std::uint64_t, sizeof(CallHeader) / 8> words{};
  std::memcpy(words.data(), &header, sizeof header);
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::uint64_t word : words)
    hash = std::rotl((hash ^ word) * 0x9e3779b97f4a7c15ULL, 29);
  return hash;
}

}  // namespace

HostLane::HostLane(Engine& engine, int lane)
    : engine_(engine),
      memory_(*engine.host_memory()),
      lane_(lane),
      sequence_(static_cast<std::size_t>(engine.size())),
      finished_(static_cast<std::size_t>(engine.size())) {
  static_assert(lane_count <= HostMemory::bells);
  RIFFLE_CHECK(sizeof(Channel) * lane_count * static_cast<std::size_t>(engine.size()) <=
               memory_.board_bytes());
  take_area();
}

void HostLane::take_area() {
  std::byte* memory = engine_.allocate(sizeof(LaneArea)).keep().data();
  area_ = reinterpret_cast<LaneArea*>(memory);
  area_at_ = *memory_.locate(memory, sizeof(LaneArea));
  chunks_ = 0;
}

Channel& HostLane::channel(Rank from, Rank to) {
  auto* channels = reinterpret_cast<Channel*>(memory_.board(from));
  return channels[lane_ * engine_.size() + to];
}

void* HostLane::between(Rank peer) {
  return &reinterpret_cast<Channel*>(memory_.board(engine_.rank()))[peer].failure;
}

// Counting starts anew. Somebody may never finish a call of before, so what it showed stays as it
// is, and we go on with fresh memory.
void HostLane::begin_epoch(std::uint32_t epoch) {
  take_area();
  for (Readers& readers : slot_readers_) readers.clear();
  ring_readers_.clear();
  epoch_ = epoch;
}

HostCall::HostCall(HostLane& lane, const Call& call, Deadline deadline)
    : lane_(lane),
      call_(call),
      deadline_(deadline),
      header_(header_of(call)),
      digest_(digest_of(header_)),
      self_(call.group.index_of(lane.engine_.rank())) {
  if (call.epoch < lane.epoch_)
    usage_error("{}: epoch {} after epoch {} on lane {}", name_of(call.operation), call.epoch,
                lane.epoch_, lane.lane_);
  if (call.epoch > lane.epoch_) lane.begin_epoch(call.epoch);
  lane.others_.clear();
  lane.posts_.assign(static_cast<std::size_t>(members()), nullptr);
  lane.operands_.assign(static_cast<std::size_t>(members()), nullptr);
  lane.views_.assign(static_cast<std::size_t>(members()), nullptr);
  const std::uint64_t epoch = std::uint64_t{call.epoch} << 32;
  bool jumped = false;
  for (const Rank peer : call.group) {
    if (peer == lane.engine_.rank()) continue;
    lane.others_.push_back(peer);
    std::uint64_t& last = lane.sequence_[static_cast<std::size_t>(peer)];
    if (last < epoch) {  // whatever we shared in earlier epochs is over
      last = epoch;
      jumped = true;
      lane.channel(lane.engine_.rank(), peer).finished.store(last, std::memory_order_release);
    }
    ++last;
  }
  if (jumped) ring_bells();
}

HostCall::~HostCall() {
  abandon(lane_.engine_.rank(), CommFailure::aborted);
}

void HostCall::check_self() const {
  throw_if_failed(lane_.engine_, lane_.engine_.rank(), call_.context());
}

void HostCall::complete() {
  check_self();
  leave();
}

void HostCall::abandon(Rank culprit, CommFailure failure) noexcept {
  if (left_) return;
  for (const Rank peer : lane_.others_) {
    Channel& channel = lane_.channel(lane_.engine_.rank(), peer);
    channel.culprit.store(culprit, std::memory_order_relaxed);
    channel.failure.store(static_cast<std::uint32_t>(failure), std::memory_order_relaxed);
    channel.abandoned.store(lane_.sequence_[static_cast<std::size_t>(peer)],
                            std::memory_order_release);
  }
  leave();
}

void HostCall::leave() noexcept {
  left_ = true;
  for (const Rank peer : lane_.others_) {
    told(lane_.between(peer));
    lane_.channel(lane_.engine_.rank(), peer)
        .finished.store(lane_.sequence_[static_cast<std::size_t>(peer)], std::memory_order_release);
  }
  ring_bells();
}

// ---------------------------------------------------------------------------- memory to show

void HostCall::mark_readers(HostLane::Readers& readers) const {
  readers.clear();
  for (const Rank peer : lane_.others_)
    readers.emplace_back(peer, lane_.sequence_[static_cast<std::size_t>(peer)]);
}

std::byte* HostCall::slot() {
  const unsigned which = lane_.next_slot_++ % 2;
  wait_unread(lane_.slot_readers_[which]);
  mark_readers(lane_.slot_readers_[which]);
  return area(self_).slots[which];
}

HostMemory::Location HostCall::location_of(const std::byte* in_own_area) const {
  return lane_.area_at_ +
         static_cast<std::size_t>(in_own_area - reinterpret_cast<std::byte*>(lane_.area_));
}

LaneArea& HostCall::ring() {
  wait_unread(lane_.ring_readers_);
  mark_readers(lane_.ring_readers_);
  return area(self_);
}

void HostCall::wait_unread(HostLane::Readers& readers) {
  for (const auto& [reader, call] : readers) {
    std::uint64_t& seen = lane_.finished_[static_cast<std::size_t>(reader)];
    if (seen >= call) continue;
    const auto& finished = lane_.channel(reader, lane_.engine_.rank()).finished;
    const auto unread = [&, peer = reader, sequence = call] {
      return finished.load(std::memory_order_acquire) >= sequence ||
             lane_.engine_.failure(peer).has_value();
    };
    Wait wait = how();
    wait.watch = std::span(&reader, 1);
    if (!unread()) lane_.memory_.wait(lane_.lane_, unread, wait);
    seen = std::max(seen, finished.load(std::memory_order_acquire));
    heard(lane_.between(reader));
  }
  readers.clear();
}

LaneArea& HostCall::area(int member) {
  if (member == self_) return *lane_.area_;
  const Post& post = *lane_.posts_[static_cast<std::size_t>(member)];
  return *reinterpret_cast<LaneArea*>(
      lane_.memory_.view(rank(member), post.area, sizeof(LaneArea)));
}

std::uint32_t HostCall::base(int member) const {
  return member == self_ ? lane_.chunks_ : lane_.posts_[static_cast<std::size_t>(member)]->base;
}

HostMemory::Location HostCall::locate(const std::byte* data, std::size_t bytes) const {
  return lane_.memory_.locate(data, bytes).value_or(Post::nowhere);
}

std::byte* HostCall::view(int member, std::size_t bytes) {
  return lane_.memory_.view(rank(member), lane_.posts_[static_cast<std::size_t>(member)]->data,
                            bytes);
}

// ---------------------------------------------------------------------------- posts

void HostCall::post(int member, int phase, HostMemory::Location data) {
  const Rank peer = rank(member);
  const std::uint64_t number = sequence(member);
  Post& post = lane_.channel(lane_.engine_.rank(), peer).posts[number & 1][phase];
  const std::uint64_t before = post.sequence.load(std::memory_order_relaxed);
  std::uint64_t& seen = lane_.finished_[static_cast<std::size_t>(peer)];
  if (before > seen) {
    const auto& finished = lane_.channel(peer, lane_.engine_.rank()).finished;
    wait(member, [&] { return finished.load(std::memory_order_acquire) >= before; });
    seen = finished.load(std::memory_order_acquire);
  }
  post.digest = digest_;
  post.area = lane_.area_at_;
  post.data = data;
  post.base = lane_.chunks_;
  post.call = header_;
  told(lane_.between(peer));
  post.sequence.store(number, std::memory_order_release);
}

void HostCall::post_all(int phase, HostMemory::Location data) {
  for (int member = 0; member < members(); ++member)
    if (member != self_) post(member, phase, data);
  ring_bells();
}

const Post& HostCall::collect(int member, int phase) {
  const std::uint64_t number = sequence(member);
  const Post& post = lane_.channel(rank(member), lane_.engine_.rank()).posts[number & 1][phase];
  wait(member, [&] { return post.sequence.load(std::memory_order_acquire) >= number; });
  // Later than ours: it has left ours behind, and its post for it with it.
  if (post.sequence.load(std::memory_order_acquire) != number) throw_abandoned(member);
  heard(lane_.between(rank(member)));
  if (post.digest != digest_) check_fit(member, post);
  lane_.posts_[static_cast<std::size_t>(member)] = &post;
  // Whoever has come to this call has finished those before.
  std::uint64_t& seen = lane_.finished_[static_cast<std::size_t>(rank(member))];
  seen = std::max(seen, number - 1);
  return post;
}

void HostCall::collect_all(int phase) {
  for (int member = 0; member < members(); ++member)
    if (member != self_) collect(member, phase);
}

void HostCall::check_fit(int member, const Post& post) const {
  throw CommError(CommFailure::mismatch, rank(member), lane_.engine_.host(rank(member)),
                  call_.context(),
                  fmt::format("it called {}; rank {} called {}", describe(post.call),
                              lane_.engine_.rank(), describe(header_)));
}

void HostCall::throw_abandoned(int member) const {
  const Channel& channel = lane_.channel(rank(member), lane_.engine_.rank());
  const Rank self = lane_.engine_.rank();
  Rank culprit = rank(member);
  CommFailure failure = CommFailure::aborted;
  // The call that it gave up may be an earlier one, after which it has left this epoch behind.
  const std::uint64_t abandoned = channel.abandoned.load(std::memory_order_acquire);
  if (abandoned != 0 && abandoned >> 32 == sequence(member) >> 32) {
    culprit = channel.culprit.load(std::memory_order_relaxed);
    failure = static_cast<CommFailure>(channel.failure.load(std::memory_order_relaxed));
  }
  if (culprit == self || culprit < 0) culprit = rank(member);
  throw CommError(failure, culprit, lane_.engine_.host(culprit), call_.context(),
                  fmt::format("rank {} has given up the call", rank(member)));
}

// ---------------------------------------------------------------------------- waiting

Wait HostCall::how() const {
  return {.deadline = deadline_,
          .context = call_.context(),
          .watch = lane_.others_,
          .background = call_.background};
}

void HostCall::wait_for(int member, HostMemory::Ready ready) {
  const Rank peer = rank(member);
  const auto& abandoned = lane_.channel(peer, lane_.engine_.rank()).abandoned;
  const std::uint64_t number = sequence(member);
  const auto over = [&] {
    return ready() || abandoned.load(std::memory_order_acquire) >= number ||
           lane_.engine_.failure(peer).has_value();
  };
  try {
    lane_.memory_.wait(lane_.lane_, over, how());
  } catch (const CommError& error) {
    if (error.failure() != CommFailure::timed_out) throw;
    throw CommError(CommFailure::timed_out, peer, lane_.engine_.host(peer), call_.context(), "");
  }
  if (ready()) return;
  if (abandoned.load(std::memory_order_acquire) >= number) throw_abandoned(member);
  throw_if_failed(lane_.engine_, peer, call_.context());
}

}  // namespace riffle::collective
