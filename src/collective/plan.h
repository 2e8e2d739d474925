// How one call is carried out: its pattern, and where the blocks of the pattern lie in the vector.
//
// A long vector is worked through in segments: parts that run the same pattern side by side, so
// that one segment's bytes travel while another's are added (a pipeline), and so that what is added
// is still in the cache. Which operands are added in which order depends on the pattern and the
// block alone, never on timing.
#pragma once

#include <memory>

#include "collective/call.h"
#include "pattern/pattern.h"

namespace riffle::collective {

// UsageError for an algorithm that has no messages (tree).
std::unique_ptr<pattern::Pattern> pattern_of(const Call& call);

// Elements begin .. begin + count of the call's vector.
using Range = Slice;

class Plan {
 public:
  // No message of a segment has much more than `piece` bytes.
  Plan(const Call& call, Bytes piece);

  [[nodiscard]] const pattern::Pattern& pattern() const { return *pattern_; }
  [[nodiscard]] int segments() const { return segments_; }
  // All elements of a segment that this call works on lie in these ranges.
  [[nodiscard]] std::vector<Range> ranges_of_segment(int segment) const;
  // The contiguous parts of a message (of one that is rounded, its blocks), in the order they are
  // sent; at least one, which may be empty.
  void ranges_of(const pattern::Message& message, int segment, std::vector<Range>& out) const;
  // The round in which `member` adds for the last time, which completes its sums; -1: it never
  // adds.
  [[nodiscard]] int last_adding_round(int member) const;

 private:
  [[nodiscard]] Range block(int segment, int block) const;

  std::unique_ptr<pattern::Pattern> pattern_;
  std::size_t count_;
  DType dtype_;
  bool scattered_;  // members own blocks of the whole vector, not of a segment
  bool merges_;     // blocks side by side are one range; not where each is rounded by itself
  int segments_ = 1;
};

}  // namespace riffle::collective
