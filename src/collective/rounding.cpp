#include "collective/rounding.h"

#include <algorithm>
#include <cstring>

namespace riffle::collective {
namespace {

// How many values of a range are rounded; the rest are exact.
std::size_t rounded(const Call& call, const Slice& range) {
  const std::size_t end = call.data.count - call.rounding.exact;
  return range.begin >= end ? 0 : std::min(range.count, end - range.begin);
}

float* values_at(const Call& call, std::size_t element) {
  return reinterpret_cast<float*>(call.data.data) + element;
}

}  // namespace

std::size_t bytes_sent(const Call& call, const Slice& range) {
  if (!call.rounds()) return range.count * static_cast<std::size_t>(size_of(call.data.dtype).count);
  const std::size_t some = rounded(call, range);
  return codec::encoded_bytes(call.rounding.wire, some) + sizeof(float) * (range.count - some);
}

void encode_range(const Call& call, const Slice& range, std::byte* out, const codec::Lost& lost) {
  const Wire wire = call.rounding.wire;
  const std::size_t some = rounded(call, range);
  codec::encode(wire, values_at(call, range.begin), some, out, lost);
  if (some < range.count)
    std::memcpy(out + codec::encoded_bytes(wire, some), values_at(call, range.begin + some),
                sizeof(float) * (range.count - some));
}

void decode_range(const Call& call, const Slice& range, const std::byte* from, std::byte* to) {
  const Wire wire = call.rounding.wire;
  const std::size_t some = rounded(call, range);
  codec::decode(wire, from, some, reinterpret_cast<float*>(to));
  if (some < range.count)
    std::memcpy(to + sizeof(float) * some, from + codec::encoded_bytes(wire, some),
                sizeof(float) * (range.count - some));
}

void round_range(const Call& call, const Slice& range, const codec::Lost& lost) {
  codec::round(call.rounding.wire, values_at(call, range.begin), rounded(call, range), lost);
}

void round_own(const Call& call, int self) {
  if (!call.rounds()) return;
  const int n = call.group.size();
  const bool gathers = call.operation == Operation::all_gather;
  const Slice own =
      gathers ? slice_of(call.data.count, call.data.dtype, n, self) : Slice{0, call.data.count};
  float* lost = call.rounding.lost;
  round_range(call, own, {lost == nullptr ? nullptr : lost + own.begin, gathers ? n : 1.0});
}

}  // namespace riffle::collective
