#include "collective/plan.h"

#include <algorithm>
#include <bit>

#include "pattern/barrier.h"
#include "pattern/broadcast.h"

namespace riffle {
namespace {

bool has_single_blocks(const Call& call) {
  return call.algorithm == Algorithm::ring || call.algorithm == Algorithm::direct;
}

}  // namespace

Algorithm choose_algorithm(Operation operation, int members, std::size_t bytes,
                           const std::vector<std::vector<int>>& racks) {
  constexpr std::size_t small = 4 << 10;
  constexpr std::size_t large = 1 << 20;
  const bool in_pairs =
      std::ranges::all_of(racks, [](const auto& rack) { return rack.size() > 1; });
  const bool levels = racks.size() > 1 && in_pairs;
  switch (operation) {
    case Operation::barrier:
      return Algorithm::automatic;
    case Operation::shift:
      return Algorithm::direct;
    case Operation::broadcast:
      if (levels) return Algorithm::two_level;
      return bytes >= large && members > 2 ? Algorithm::ring : Algorithm::halving_doubling;
    case Operation::all_reduce:
      if (bytes <= small && std::has_single_bit(static_cast<unsigned>(members)))
        return Algorithm::recursive_doubling;
      if (levels) return Algorithm::two_level;
      break;
    default:
      break;
  }
  return members <= 8 ? Algorithm::direct : Algorithm::halving_doubling;
}

std::unique_ptr<pattern::Pattern> pattern_of(const Call& call) {
  const int n = call.group.size();
  switch (call.operation) {
    case Operation::broadcast:
      return pattern::make_broadcast_pattern(call.algorithm, n, call.root, call.racks);
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
  }
  return nullptr;
}

Plan::Plan(const Call& call, std::size_t piece)
    : pattern_(pattern_of(call)),
      count_(call.data.count),
      dtype_(call.data.dtype),
      scattered_(call.operation == Operation::reduce_scatter ||
                 call.operation == Operation::all_gather) {
  // A run of several blocks is contiguous only while blocks are whole.
  if (scattered_ && !has_single_blocks(call)) return;
  const std::size_t bytes = count_ * static_cast<std::size_t>(size_of(dtype_).count);
  const std::size_t strand = piece * static_cast<std::size_t>(pattern_->blocks());
  strands_ = static_cast<int>(std::clamp<std::size_t>((bytes + strand - 1) / strand, 1, 1 << 16));
}

Range Plan::block(int strand, int block) const {
  const Range outer = scattered_ ? slice_of(count_, dtype_, pattern_->blocks(), block)
                                 : slice_of(count_, dtype_, strands_, strand);
  const Range inner = scattered_ ? slice_of(outer.count, dtype_, strands_, strand)
                                 : slice_of(outer.count, dtype_, pattern_->blocks(), block);
  return {outer.begin + inner.begin, inner.count};
}

std::vector<Range> Plan::ranges_of_strand(int strand) const {
  std::vector<Range> ranges;
  ranges_of({.first = 0, .count = pattern_->blocks()}, strand, ranges);
  return ranges;
}

void Plan::ranges_of(const pattern::Message& message, int strand, std::vector<Range>& out) const {
  out.clear();
  for (int i = 0; i < message.count; ++i) {
    const Range next = block(strand, (message.first + i) % pattern_->blocks());
    if (next.count == 0) continue;
    if (!out.empty() && out.back().begin + out.back().count == next.begin)
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

}  // namespace riffle
