// How a long vector is cut: into segments, each of which runs the pattern by itself, so that one
// segment's bytes travel while another's are added, or are in another phase. The runtime cuts by
// this rule; the cost model and the timing simulator count by it.
#pragma once

#include "pattern/pattern.h"

namespace riffle::pattern {

// So many segments are under way at a time between hosts; a member begins the next when one of them
// is done.
constexpr int kWindow = 8;

// The bytes of a segment whose largest message has `piece` bytes.
std::int64_t segment_bytes(const Pattern& pattern, Bytes piece);
// The segments of `size` bytes: at least one.
int segments(const Pattern& pattern, Bytes size, Bytes piece);

}  // namespace riffle::pattern
