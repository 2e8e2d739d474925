// How members on one host find each other in a collective, without any set-up.
//
// Every ordered pair of ranks has a channel on every lane, in the board of the rank that writes it.
// Both ranks of a pair count the calls they share on a lane; a call's number (with the epoch above
// it) is its sequence. A post for a call carries it, so a reader knows which call a post belongs
// to, whatever groups either of them works in besides; posts of calls that were given up are passed
// over. Two calls fit into a channel: a post is overwritten only when its reader has finished the
// call it was for. The same mark frees the memory that the call has shown to its peers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "collective/call.h"
#include "collective/copy_choice.h"
#include "riffle/engine.h"

namespace riffle::collective {

constexpr int lane_count = 16;

// "I have come to this point of the call; here is what you may read."
struct Post {
  static constexpr HostMemory::Location nowhere = 0;  // a segment begins with its header

  alignas(64) std::atomic<std::uint64_t> sequence;
  std::uint64_t digest;         // of the header: all members must agree
  HostMemory::Location area;    // of the poster's LaneArea
  HostMemory::Location data;    // a slot, or the poster's buffer; nowhere for foreign memory
  std::uint32_t base;           // of the LaneArea's counters
  alignas(64) CallHeader call;  // read only when the digest differs
};

struct Channel {
  Post posts[2][2];                                  // by sequence, by phase
  alignas(64) std::atomic<std::uint64_t> finished;   // this rank left that call with the peer
  alignas(64) std::atomic<std::uint64_t> abandoned;  // the last such it left with an error,
  std::atomic<std::int32_t> culprit;                 // for which this rank was to blame,
  std::atomic<std::uint32_t> failure;                // namely for this
};

// What one rank shows on a lane: slots for small calls, a ring of chunks for staged ones.
struct LaneArea {
  static constexpr std::size_t slot_bytes = std::size_t{8} << 10;
  static constexpr std::size_t chunk_bytes = std::size_t{256} << 10;
  static constexpr std::uint32_t chunks = 4;

  // Chunks, counted over the life of the lane, that this rank has copied in, added up, and read
  // from all its peers.
  alignas(64) std::atomic<std::uint32_t> in;
  alignas(64) std::atomic<std::uint32_t> reduced;
  alignas(64) std::atomic<std::uint32_t> out;
  alignas(64) std::byte slots[2][slot_bytes];
  alignas(64) std::byte ring[chunks][chunk_bytes];
};

// The calls of one lane of one rank; used by one thread at a time.
class HostLane {
 public:
  HostLane(Engine& engine, int lane);

 private:
  friend class HostCall;
  // Memory of ours and who may still be reading it: peers that have not finished that call.
  using Readers = std::vector<std::pair<Rank, std::uint64_t>>;

  [[nodiscard]] Channel& channel(Rank from, Rank to);
  // What this rank and a peer have in common, the same on all lanes.
  [[nodiscard]] void* between(Rank peer);
  void begin_epoch(std::uint32_t epoch);
  void take_area();

  Engine& engine_;
  HostMemory& memory_;
  int lane_;
  std::uint32_t epoch_ = 0;
  // The engine keeps it to its end: peers that have yet to finish a call may read it even after we
  // have gone on to another epoch, or are done.
  LaneArea* area_ = nullptr;
  HostMemory::Location area_at_ = 0;
  std::vector<std::uint64_t> sequence_;  // by rank: of the last call shared with it
  std::vector<std::uint64_t> finished_;  // by rank: it has finished this one, as far as we know
  std::array<Readers, 2> slot_readers_;
  Readers ring_readers_;
  unsigned next_slot_ = 0;
  std::uint32_t chunks_ = 0;  // that went through the ring of area_
  CopyChoice copies_;
  // What the call in progress needs; members, so that their memory is used again.
  std::vector<Rank> others_;
  std::vector<const Post*> posts_;          // by member: the last collected
  std::vector<const std::byte*> operands_;  // by member
  std::vector<std::byte*> views_;           // by member
};

// One call on a lane, from the first post to the end. Whatever ends it, peers are told.
class HostCall {
 public:
  HostCall(HostLane& lane, const Call& call, Deadline deadline);
  ~HostCall();
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;

  [[nodiscard]] const Call& call() const { return call_; }
  [[nodiscard]] int members() const { return call_.group.size(); }
  [[nodiscard]] int self() const { return self_; }  // member index, as all below
  [[nodiscard]] Rank rank(int member) const {
    return call_.group.ranks()[static_cast<std::size_t>(member)];
  }

  // Members share cores.
  [[nodiscard]] bool crowded() const { return lane_.memory_.crowded(); }
  // A slot of ours that nobody reads any more.
  std::byte* slot();
  [[nodiscard]] HostMemory::Location location_of(const std::byte* in_own_area) const;
  // Our area, its ring unread by anybody.
  LaneArea& ring();
  // A member's area and where its counters stood at the start; of others, once collected.
  LaneArea& area(int member);
  [[nodiscard]] std::uint32_t base(int member) const;
  [[nodiscard]] HostMemory::Location locate(const std::byte* data, std::size_t bytes) const;
  std::byte* view(int member, std::size_t bytes);  // of its buffer or slot

  // Posts `phase` (0 or 1) to one member, to all others.
  void post(int member, int phase, HostMemory::Location data = Post::nowhere);
  void post_all(int phase, HostMemory::Location data = Post::nowhere);
  void ring_bells() { lane_.memory_.ring(lane_.others_, lane_.lane_); }
  // Waits for a member's post, for those of all others. CommError (mismatch) when its call differs.
  const Post& collect(int member, int phase);
  void collect_all(int phase);
  // Waits until ready(); `member` is who makes it so.
  template <typename F>
  void wait(int member, const F& ready);

  // Room for a pointer for each member.
  std::vector<const std::byte*>& operands() { return lane_.operands_; }
  std::vector<std::byte*>& views() { return lane_.views_; }
  // A rank that was stopped and that others have given up meanwhile must not write to their memory,
  // nor believe in its result: CommError that names ourselves.
  void check_self() const;
  CopyChoice& copies() { return lane_.copies_; }
  // Chunks that this call sends through the rings.
  void use_chunks(std::uint32_t count) { lane_.chunks_ += count; }

  // Ends the call. Without either of them the destructor ends it as given up.
  void complete();
  void abandon(Rank culprit, CommFailure failure) noexcept;

 private:
  void wait_for(int member, HostMemory::Ready ready);
  void wait_unread(HostLane::Readers& readers);
  void check_fit(int member, const Post& post) const;
  [[noreturn]] void throw_abandoned(int member) const;
  void leave() noexcept;
  [[nodiscard]] Wait how() const;
  [[nodiscard]] std::uint64_t sequence(int member) const {
    return lane_.sequence_[static_cast<std::size_t>(rank(member))];
  }
  void mark_readers(HostLane::Readers& readers) const;

  HostLane& lane_;
  const Call& call_;
  Deadline deadline_;
  CallHeader header_;
  std::uint64_t digest_;
  int self_;
  bool left_ = false;
};

template <typename F>
void HostCall::wait(int member, const F& ready) {
  if (!ready()) wait_for(member, ready);
}

}  // namespace riffle::collective
