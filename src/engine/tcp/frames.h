// What travels over a connection of the TCP network, as bytes. A connection carries one way only:
// who has something to send connects, says who it is, and sends frames; nothing comes back but a
// farewell.
#pragma once

#include <cstdint>

#include "engine/network.h"

namespace riffle::engine {

// The first bytes of a connection. What does not begin like this is a stranger and is dropped.
struct Hello {
  std::uint64_t magic = 0;
  std::uint64_t session = 0;
  std::uint32_t from = 0;
  std::uint32_t number = 0;  // of the sender's connections to us
  static constexpr std::uint64_t expected_magic = 0x31706374656c6672;
};

enum class FrameKind : std::uint32_t { chunk, goodbye };

// In front of a chunk's bytes. Frames of one sender are counted over all its connections, and are
// taken in that order.
struct Frame {
  FrameKind kind = FrameKind::chunk;
  std::uint32_t bytes = 0;  // that follow
  std::uint64_t sequence = 0;
  Chunk chunk;  // of a goodbye: `offset` is the rank to blame, counted from one; 0: nobody
};
static_assert(sizeof(Frame) == 48);

// Says that a goodbye was heard.
constexpr char farewell_byte = 'f';

constexpr std::size_t tcp_chunk_bytes = std::size_t{128} << 10;
// Where several connections carry one stream: frames are taken in order, so a long one on a slow
// connection would hold up the others.
constexpr std::size_t tcp_shared_chunk_bytes = std::size_t{32} << 10;

}  // namespace riffle::engine
