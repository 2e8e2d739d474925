// Messages of a call whose values travel rounded.
#include <utility>

#include "collective/execute_pattern.h"
#include "collective/rounding.h"

namespace riffle::collective {
namespace {

// Decoded values lie behind all that is received, on a line of their own.
std::size_t whole_lines(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

// One message at a time comes from a member, with all its blocks.
void PatternOperation::post_rounded_receives(Segment& segment, int number) {
  Round& round = segment.at(number);
  segment.awaited = number + 1;
  round.to_add.clear();
  round.to_decode.clear();
  messages_.clear();
  plan_.pattern().receives(me_, number, messages_);
  std::size_t received = 0;
  std::size_t decoded = 0;
  for (const pattern::Message& message : messages_) {
    plan_.ranges_of(message, segment.index, ranges_);
    for (const Range& range : ranges_) {
      received += bytes_sent(call_, range);
      if (message.add) decoded += range.count * sizeof(float);
    }
  }
  if (round.scratch.empty()) round.scratch = pool_->take();
  std::byte* in = round.scratch.reserve(whole_lines(received) + decoded + 64);
  const auto past = reinterpret_cast<std::uintptr_t>(in) % 64;
  std::byte* sums = in + whole_lines(received) + (past == 0 ? 0 : 64 - past);
  for (const pattern::Message& message : messages_) {
    expect_handshake(message.from);
    plan_.ranges_of(message, segment.index, ranges_);
    std::byte* const begin = in;
    for (const Range& range : ranges_) {
      const std::byte* from = std::exchange(in, in + bytes_sent(call_, range));
      if (range.count == 0) continue;
      std::byte* to = at(range.begin);
      if (message.add) {
        to = std::exchange(sums, sums + range.count * sizeof(float));
        round.to_add.push_back({message.from, range, to});
      }
      round.to_decode.push_back({range, from, to});
    }
    const Tag tag = tag_of(message.from, segment.index, number);
    transfers_.add(engine_->receive(rank_of(message.from), tag, {begin, in}),
                   {Transfers::Kind::receive, message.from,
                    static_cast<int>(&segment - segments_.data()), tag});
    ++round.open;
  }
}

void PatternOperation::post_rounded_sends(Segment& segment) {
  Round& round = segment.at(segment.round);
  messages_.clear();
  plan_.pattern().sends(me_, segment.round, messages_);
  std::size_t sent = 0;
  for (const pattern::Message& message : messages_) {
    plan_.ranges_of(message, segment.index, ranges_);
    for (const Range& range : ranges_) sent += bytes_sent(call_, range);
  }
  if (sent > 0 && round.outgoing.empty()) round.outgoing = pool_->take();
  std::byte* out = round.outgoing.reserve(sent);
  std::span<const std::byte> last;
  const pattern::Message* same = nullptr;  // what was encoded last
  for (const pattern::Message& message : messages_) {
    send_handshake(message.to);
    if (same == nullptr || same->first != message.first || same->count != message.count) {
      std::byte* const begin = out;
      plan_.ranges_of(message, segment.index, ranges_);
      for (const Range& range : ranges_) {
        encode_range(call_, range, out, lost_from(range, segment.round, 1));
        out += bytes_sent(call_, range);
      }
      last = {begin, out};
      same = &message;
    }
    ++round.open;
    send_when_begun(
        {Transfers::Kind::send, message.to, static_cast<int>(&segment - segments_.data()),
         tag_of(message.to, segment.index, segment.round)},
        last);
  }
}

void PatternOperation::decode(Round& round) {
  for (const Rounded& each : round.to_decode) decode_range(call_, each.range, each.from, each.to);
  round.to_decode.clear();
}

// Sums that are complete, before they are sent to all. Those of a reduce_scatter stay here.
void PatternOperation::round_results(const Segment& segment) {
  if (call_.operation != Operation::all_reduce) return;
  const Round& round = segment.rounds[static_cast<std::size_t>(segment.round) % 2];
  const Incoming* before = nullptr;
  for (const Incoming& each : round.to_add) {
    if (before != nullptr && before->range == each.range) continue;
    before = &each;
    round_range(call_, each.range, lost_from(each.range, segment.round + 1, scale_));
  }
}

// What a rounding of `range` takes away, after `scale`, in units of this member's own data.
codec::Lost PatternOperation::lost_from(const Range& range, int round, double scale) const {
  float* lost = call_.rounding.lost;
  if (lost == nullptr) return {};
  lost += range.begin;
  if (call_.operation == Operation::shift) return {lost, 1};
  if (call_.operation == Operation::all_gather) return {lost, 1.0 * call_.group.size()};
  if (own_weight_ == 0) return {};  // it has no part in the mean
  return {lost, 1 / (own_weight_ * scale * plan_.pattern().holders(round))};
}

}  // namespace riffle::collective
