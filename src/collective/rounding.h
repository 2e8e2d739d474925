// What a call that rounds makes of ranges of its vector. Values at the end of the vector may travel
// as they are (Rounding::exact): a range is encoded as its rounded part, then its exact part.
#pragma once

#include "codec/codec.h"
#include "collective/call.h"

namespace riffle::collective {

// That travel for a range, rounded or not.
std::size_t bytes_sent(const Call& call, const Slice& range);

// Of a call that rounds. The range of the data <- what decode_range() will make of `out`.
void encode_range(const Call& call, const Slice& range, std::byte* out, const codec::Lost& lost);
void decode_range(const Call& call, const Slice& range, const std::byte* from, std::byte* to);
void round_range(const Call& call, const Slice& range, const codec::Lost& lost);

// What member `self` contributes, rounded before it is reduced in shared memory; nothing where the
// call does not round.
void round_own(const Call& call, int self);

}  // namespace riffle::collective
