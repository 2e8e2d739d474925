// Staged: data in ordinary memory goes through rings of four chunks in memory that all map. Each
// member copies in what others need of a chunk, adds up its own piece of everybody's, and copies
// out the results; while one chunk is added the next is copied in and the last copied out, or all
// four one after the other where members share cores. Members follow each other's counters: there
// is no meeting. After an error the chunks that were copied out hold the result, the rest what it
// was: undefined as a whole. (A reduce_scatter has changed only the own slice.)
#include <algorithm>
#include <cstring>

#include "collective/copy.h"
#include "collective/host.h"
#include "collective/reduce.h"

namespace riffle::collective {

namespace {

// The part of one member in a chunk; half or twice as much made no difference that could be
// measured.
constexpr std::size_t most_piece_bytes = std::size_t{64} << 10;

using Counter = std::atomic<std::uint32_t> LaneArea::*;

// What the chunks have in common: where they lie, and the counters.
class Stage {
 public:
  explicit Stage(HostCall& host)
      : host_(host),
        data_(host.call().data),
        size_(static_cast<std::size_t>(size_of(data_.dtype).count)),
        base_(host.base(host.self())),
        own_(host.ring()),
        large_(data_.count * size_ >= cached_bytes),
        kind_(host.copies().next(data_.count * size_)),
        began_(Clock::now()) {}

 protected:
  std::byte* slot(LaneArea& area, int member, std::uint32_t chunk) {
    return area.ring[(base(member) + chunk) % LaneArea::chunks];
  }
  std::byte* slot(int member, std::uint32_t chunk) {
    return slot(member == host_.self() ? own_ : host_.area(member), member, chunk);
  }
  [[nodiscard]] std::uint32_t base(int member) const {
    return member == host_.self() ? base_ : host_.base(member);
  }
  // Before the first chunk: should this call fail, the next one counts from after it.
  void begin(std::uint32_t chunks) { host_.use_chunks(chunks); }
  // Waits until `member` has done the first `chunks` of this call.
  void follow(int member, Counter counter, std::uint32_t chunks) {
    const auto& count = host_.area(member).*counter;
    const std::uint32_t wanted = base(member) + chunks;
    host_.wait(member, [&] {
      return static_cast<std::int32_t>(count.load(std::memory_order_acquire) - wanted) >= 0;
    });
  }
  void follow_all(Counter counter, std::uint32_t chunks) {
    for (int member = 0; member < host_.members(); ++member)
      if (member != host_.self()) follow(member, counter, chunks);
  }
  void advance(Counter counter, std::uint32_t chunks) {
    (own_.*counter).store(base_ + chunks, std::memory_order_release);
    host_.ring_bells();
  }
  // To our slot, which others read.
  void copy_in(std::byte* to, const std::byte* from, std::size_t bytes) const {
    if (kind_ == CopyChoice::around_cache)
      copy_around_cache(to, from, bytes);
    else if (bytes > 0)
      std::memcpy(to, from, bytes);
  }
  // To the caller's memory, which is not read again soon when it is large.
  void copy_out(std::byte* to, const std::byte* from, std::size_t bytes) const {
    if (large_)
      copy_around_cache(to, from, bytes);
    else if (bytes > 0)
      std::memcpy(to, from, bytes);
  }
  // The counters agree at the end of every call, whichever of them it used.
  void end(std::uint32_t chunks) {
    for (const Counter counter : {&LaneArea::in, &LaneArea::reduced, &LaneArea::out})
      (own_.*counter).store(base_ + chunks, std::memory_order_release);
    host_.ring_bells();
    host_.copies().took(data_.count * size_, kind_, Clock::now() - began_);
  }

  HostCall& host_;
  TensorView data_;
  std::size_t size_;
  std::uint32_t base_;
  LaneArea& own_;
  bool large_;
  CopyChoice::Kind kind_;
  Clock::time_point began_;
};

// Chunks that hold a piece of every member's slice: all_reduce, reduce_scatter, all_gather.
class Scattered : Stage {
 public:
  explicit Scattered(HostCall& host)
      : Stage(host),
        piece_(std::min(most_piece_bytes, LaneArea::chunk_bytes /
                                              static_cast<std::size_t>(host.members()) / 64 * 64) /
               size_),
        chunks_(static_cast<std::uint32_t>((slice(0).count + piece_ - 1) / piece_)) {}

  void run() {
    const bool adds = host_.call().adds();
    const bool shares = host_.call().operation != Operation::reduce_scatter;
    begin(chunks_);
    if (host_.crowded())
      run_in_turns(adds, shares);
    else
      run_pipelined(adds, shares);
    end(chunks_);
  }

 private:
  void run_pipelined(bool adds, bool shares) {
    for (std::uint32_t t = 0; t < chunks_ + 2; ++t) {
      if (t < chunks_) copy_in(t, adds);
      if (adds && t >= 1 && t < chunks_ + 1) reduce(t - 1, shares);
      if (t >= 2) collect(t - 2, adds, shares);
    }
  }
  // As much as fits the ring before waiting for others: where cores are shared, every wait is a
  // switch to another member.
  void run_in_turns(bool adds, bool shares) {
    for (std::uint32_t first = 0; first < chunks_; first += LaneArea::chunks) {
      const std::uint32_t last = std::min(chunks_, first + LaneArea::chunks);
      for (std::uint32_t t = first; t < last; ++t) copy_in(t, adds);
      for (std::uint32_t t = first; t < last && adds; ++t) reduce(t, shares);
      for (std::uint32_t t = first; t < last; ++t) collect(t, adds, shares);
    }
  }

  [[nodiscard]] Slice slice(int member) const {
    return slice_of(data_.count, data_.dtype, host_.members(), member);
  }
  struct Piece {
    std::byte* data;    // in the caller's memory
    std::size_t at;     // in a slot
    std::size_t count;  // of elements
    std::size_t bytes;
  };
  [[nodiscard]] Piece piece(int member, std::uint32_t chunk) const {
    const Slice all = slice(member);
    const std::size_t skipped = std::min(all.count, chunk * piece_);
    const std::size_t count = std::min(piece_, all.count - skipped);
    return {data_.data + (all.begin + skipped) * size_,
            static_cast<std::size_t>(member) * piece_ * size_, count, count * size_};
  }

  // What others need of ours: their pieces to add, or our own as it is.
  void copy_in(std::uint32_t chunk, bool adds) {
    if (chunk >= LaneArea::chunks) follow_all(&LaneArea::out, chunk - LaneArea::chunks + 1);
    std::byte* to = slot(host_.self(), chunk);
    for (int member = 0; member < host_.members(); ++member) {
      if ((member != host_.self()) != adds) continue;
      const Piece part = piece(member, chunk);
      Stage::copy_in(to + part.at, part.data, part.bytes);
    }
    advance(&LaneArea::in, chunk + 1);
  }

  void reduce(std::uint32_t chunk, bool shares) {
    follow_all(&LaneArea::in, chunk + 1);
    const Piece own = piece(host_.self(), chunk);
    if (own.count > 0) {
      auto& operands = host_.operands();
      for (int member = 0; member < host_.members(); ++member)
        operands[static_cast<std::size_t>(member)] =
            member == host_.self() ? own.data : slot(member, chunk) + own.at;
      combine_into(own.data, operands,
                   {host_.call().reduction, host_.call().weights, scale_of(host_.call())},
                   own.count, data_.dtype);
      if (shares) Stage::copy_in(slot(host_.self(), chunk) + own.at, own.data, own.bytes);
    }
    advance(&LaneArea::reduced, chunk + 1);
  }

  void collect(std::uint32_t chunk, bool adds, bool shares) {
    if (shares) {
      for (int step = 1; step < host_.members(); ++step) {
        const int member = (host_.self() + step) % host_.members();
        follow(member, adds ? &LaneArea::reduced : &LaneArea::in, chunk + 1);
        const Piece theirs = piece(member, chunk);
        copy_out(theirs.data, slot(member, chunk) + theirs.at, theirs.bytes);
      }
    }
    advance(&LaneArea::out, chunk + 1);
  }

  std::size_t piece_;  // elements
  std::uint32_t chunks_;
};

// Chunks that one member reads from another as they are: broadcast and shift.
class Streamed : Stage {
 public:
  explicit Streamed(HostCall& host)
      : Stage(host),
        chunk_(LaneArea::chunk_bytes / size_),
        chunks_(static_cast<std::uint32_t>((data_.count + chunk_ - 1) / chunk_)) {}

  void broadcast(int root) {
    begin(chunks_);
    for (std::uint32_t t = 0; t < chunks_; ++t) {
      if (host_.self() == root) {
        if (t >= LaneArea::chunks) follow_all(&LaneArea::out, t - LaneArea::chunks + 1);
        copy_in(t);
      } else {
        follow(root, &LaneArea::in, t + 1);
        copy_out(at(t), slot(root, t), count(t) * size_);
        advance(&LaneArea::out, t + 1);
      }
    }
    end(chunks_);
  }

  void shift(int to, int from) {
    const ShiftShares shares = shares_of(host_.call(), host_.self(), from);
    const double weights[] = {shares.own, shares.theirs};
    begin(chunks_);
    for (std::uint32_t t = 0; t < chunks_ + 1; ++t) {
      if (t < chunks_) {
        if (t >= LaneArea::chunks) follow(to, &LaneArea::out, t - LaneArea::chunks + 1);
        copy_in(t);
      }
      if (t == 0) continue;
      follow(from, &LaneArea::in, t);
      const std::byte* const operands[] = {at(t - 1), slot(from, t - 1)};
      reduce_into(at(t - 1), operands, weights, shares.scale, count(t - 1), data_.dtype);
      advance(&LaneArea::out, t);
    }
    end(chunks_);
  }

 private:
  [[nodiscard]] std::byte* at(std::uint32_t chunk) const {
    return data_.data + chunk * chunk_ * size_;
  }
  [[nodiscard]] std::size_t count(std::uint32_t chunk) const {
    return std::min(chunk_, data_.count - chunk * chunk_);
  }
  void copy_in(std::uint32_t chunk) {
    Stage::copy_in(slot(host_.self(), chunk), at(chunk), count(chunk) * size_);
    advance(&LaneArea::in, chunk + 1);
  }

  std::size_t chunk_;  // elements
  std::uint32_t chunks_;
};

}  // namespace

void staged(HostCall& host) {
  const Call& call = host.call();
  const int n = host.members();
  if (call.operation == Operation::broadcast)
    Streamed(host).broadcast(call.root);
  else if (call.operation == Operation::shift)
    Streamed(host).shift(shift_target(host.self(), call.places, n),
                         shift_target(host.self(), -call.places, n));
  else
    Scattered(host).run();
}

}  // namespace riffle::collective
