#include "engine/tcp/receiver.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace riffle::engine {

namespace {

// Small messages come several at a time; what is longer goes past the buffer.
constexpr std::size_t buffer_bytes = std::size_t{32} << 10;

}  // namespace

TcpReceiver::TcpReceiver(Descriptor socket) : socket_(std::move(socket)), buffer_(buffer_bytes) {}

TcpReceiver::State TcpReceiver::fill(std::size_t wanted) {
  if (end_ - begin_ >= wanted) return State::ready;
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  while (end_ < wanted) {
    const ssize_t got =
        recv(socket_.get(), buffer_.data() + end_, buffer_.size() - end_, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return State::more;
    if (got <= 0) return State::gone;
    end_ += static_cast<std::size_t>(got);
  }
  return State::ready;
}

std::size_t TcpReceiver::take(std::byte* target, std::size_t bytes) {
  const std::size_t taken = std::min(bytes, end_ - begin_);
  if (target != nullptr && taken > 0) std::memcpy(target, buffer_.data() + begin_, taken);
  begin_ += taken;
  return taken;
}

TcpReceiver::State TcpReceiver::read_hello(Hello& hello) {
  const State state = fill(sizeof hello);
  if (state == State::ready) take(reinterpret_cast<std::byte*>(&hello), sizeof hello);
  return state;
}

TcpReceiver::State TcpReceiver::read_frame(Frame& frame) {
  if (!frame_) {
    const State state = fill(sizeof frame);
    if (state != State::ready) return state;
    take(reinterpret_cast<std::byte*>(&frame_.emplace()), sizeof frame);
    if (frame_->bytes > tcp_chunk_bytes || frame_->kind > FrameKind::goodbye) return State::gone;
  }
  frame = *frame_;
  return State::ready;
}

// What is in the buffer first, then from the socket into place; what follows goes to the buffer.
TcpReceiver::State TcpReceiver::read_into(std::byte* target, std::size_t wanted, std::size_t& got) {
  got = take(target, wanted);
  if (got > 0) return State::ready;
  begin_ = end_ = 0;
  if (target == nullptr) {
    const State state = fill(1);
    got = state == State::ready ? take(nullptr, wanted) : 0;
    return state;
  }
  std::array<iovec, 2> parts{{{target, wanted}, {buffer_.data(), buffer_.size()}}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t read = recvmsg(socket_.get(), &message, MSG_DONTWAIT);
  if (read < 0 && errno == EAGAIN) return State::more;
  if (read <= 0) return State::gone;
  got = std::min(wanted, static_cast<std::size_t>(read));
  end_ = static_cast<std::size_t>(read) - got;
  return State::ready;
}

void TcpReceiver::say_farewell() const {
  static_cast<void>(send(socket_.get(), &farewell_byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT));
}

}  // namespace riffle::engine
