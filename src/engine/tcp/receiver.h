// One connection from a peer, or from somebody who has not said yet who it is: frames come out of
// its bytes, and a chunk's bytes go straight where they belong.
#pragma once

#include <optional>
#include <vector>

#include "base/descriptor.h"
#include "engine/tcp/frames.h"

namespace riffle::engine {

class TcpReceiver {
 public:
  explicit TcpReceiver(Descriptor socket);

  [[nodiscard]] int fd() const { return socket_.get(); }
  // What is there of the next thing to take; reads where there is too little.
  //   more: nothing to take now.  gone: the connection is over, or not ours.
  enum class State { more, ready, gone };
  State read_hello(Hello& hello);
  // `frame` stays the same until finish().
  State read_frame(Frame& frame);
  // Reads bytes of the frame; ready when all are there. `place(done)` says where they go.
  template <typename Place>
  State read_bytes(const Place& place);
  // The frame has been taken.
  void finish() { frame_.reset(), done_ = 0; }
  // Something lies here that no event of the socket will tell of.
  [[nodiscard]] bool has_more() const { return begin_ < end_; }
  // Tells the peer that its goodbye was heard.
  void say_farewell() const;

 private:
  State fill(std::size_t wanted);
  State read_into(std::byte* target, std::size_t wanted, std::size_t& got);
  std::size_t take(std::byte* target, std::size_t bytes);

  Descriptor socket_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::optional<Frame> frame_;
  std::size_t done_ = 0;  // of its bytes
};

template <typename Place>
TcpReceiver::State TcpReceiver::read_bytes(const Place& place) {
  while (done_ < frame_->bytes) {
    std::size_t got = 0;
    const State state = read_into(place(done_), frame_->bytes - done_, got);
    done_ += got;
    if (state != State::ready) return state;
  }
  return State::ready;
}

}  // namespace riffle::engine
