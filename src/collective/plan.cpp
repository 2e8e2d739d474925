#include "collective/plan.h"

#include <algorithm>

#include "collective/rounding.h"
#include "pattern/barrier.h"
#include "pattern/broadcast.h"
#include "pattern/pieces.h"
#include "pattern/reduce.h"

namespace riffle::collective {
namespace {

bool has_single_blocks(const Call& call) {
  return call.algorithm == Algorithm::ring || call.algorithm == Algorithm::direct;
}

}  // namespace

std::unique_ptr<pattern::Pattern> pattern_of(const Call& call) {
  const int n = call.group.size();
  switch (call.operation) {
    case Operation::broadcast:
      return pattern::make_broadcast_pattern(call.algorithm, n, call.root, call.racks);
    case Operation::reduce:
      return pattern::make_reduce_pattern(call.algorithm, n, call.root, call.racks);
    case Operation::barrier:
      return pattern::make_barrier_pattern(call.algorithm, n, call.racks);
    case Operation::all_reduce:
      return pattern::make_pattern(call.algorithm, Collective::all_reduce, n, call.racks);
    case Operation::reduce_scatter:
      return pattern::make_pattern(call.algorithm, Collective::reduce_scatter, n);
    case Operation::all_gather:
      return pattern::make_pattern(call.algorithm, Collective::all_gather, n);
    case Operation::shift:
      return pattern::make_pattern(call.algorithm, Collective::shift, n, {}, call.places);
    case Operation::all_to_all:
    case Operation::gather:
    case Operation::scatter:
      break;  // parts.cpp: what members send has no place in a common vector
  }
  return nullptr;
}

Plan::Plan(const Call& call, Bytes piece)
    : pattern_(pattern_of(call)),
      count_(call.data.count),
      dtype_(call.data.dtype),
      scattered_(call.operation == Operation::reduce_scatter ||
                 call.operation == Operation::all_gather),
      merges_(!call.rounds()) {
  // A run of several blocks is contiguous only while blocks are whole.
  if (scattered_ && !has_single_blocks(call)) return;
  const Bytes bytes{static_cast<std::int64_t>(bytes_sent(call, {0, count_}))};
  segments_ = pattern::segments(*pattern_, bytes, piece);
}

Range Plan::block(int segment, int block) const {
  const Range outer = scattered_ ? slice_of(count_, dtype_, pattern_->blocks(), block)
                                 : slice_of(count_, dtype_, segments_, segment);
  const Range inner = scattered_ ? slice_of(outer.count, dtype_, segments_, segment)
                                 : slice_of(outer.count, dtype_, pattern_->blocks(), block);
  return {outer.begin + inner.begin, inner.count};
}

std::vector<Range> Plan::ranges_of_segment(int segment) const {
  std::vector<Range> ranges;
  ranges_of({.first = 0, .count = pattern_->blocks()}, segment, ranges);
  return ranges;
}

void Plan::ranges_of(const pattern::Message& message, int segment, std::vector<Range>& out) const {
  out.clear();
  for (int i = 0; i < message.count; ++i) {
    const Range next = block(segment, (message.first + i) % pattern_->blocks());
    if (next.count == 0) continue;
    if (merges_ && !out.empty() && out.back().begin + out.back().count == next.begin)
      out.back().count += next.count;
    else
      out.push_back(next);
  }
  if (out.empty()) out.push_back({0, 0});
}

int Plan::last_adding_round(int member) const {
  std::vector<pattern::Message> messages;
  for (int round = pattern_->rounds() - 1; round >= 0; --round) {
    messages.clear();
    pattern_->receives(member, round, messages);
    if (std::ranges::any_of(messages, &pattern::Message::add)) return round;
  }
  return -1;
}

}  // namespace riffle::collective
