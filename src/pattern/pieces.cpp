#include "pattern/pieces.h"

#include <algorithm>

namespace riffle::pattern {
namespace {

// In blocks. Members may differ, so all of them are asked: all must cut alike.
int largest_message(const Pattern& pattern) {
  int most = 1;
  std::vector<Message> messages;
  for (const RoundClass& each : pattern.round_classes())
    for (int member = 0; member < pattern.members(); ++member) {
      messages.clear();
      pattern.sends(member, each.round, messages);
      for (const Message& message : messages) most = std::max(most, message.count);
    }
  return most;
}

}  // namespace

std::int64_t segment_bytes(const Pattern& pattern, Bytes piece) {
  return std::max<std::int64_t>(piece.count * pattern.blocks() / largest_message(pattern), 1);
}

int segments(const Pattern& pattern, Bytes size, Bytes piece) {
  constexpr std::int64_t most = 1 << 16;
  if (size <= piece) return 1;
  const std::int64_t segment = segment_bytes(pattern, piece);
  return static_cast<int>(std::clamp<std::int64_t>((size.count + segment - 1) / segment, 1, most));
}

}  // namespace riffle::pattern
