#include "engine/tcp/sender.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "engine/ipv4.h"

namespace riffle::engine {

namespace {

// The kernel takes what it will send within this time and no more: what it has taken cannot be
// overtaken, and a message counts as sent when it has all of it.
constexpr Seconds taken_ahead = milliseconds(2);
constexpr int least_taken = 64 << 10;
constexpr int least_taken_shared = 16 << 10;
constexpr int most_taken = 4 << 20;
// Frames between two looks at what the kernel knows of the way.
constexpr int look_every = 16;

}  // namespace

TcpSender::TcpSender(const std::string& address, const Hello& hello)
    : socket_(new_tcp_socket()), hello_(hello) {
  let_the_kernel_take(least_taken * 2);
  const sockaddr_in to = ipv4_address(address, "data address");
  // An error shows when we write.
  static_cast<void>(connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

void TcpSender::push(const Frame& frame, std::span<const std::byte> data, std::uint64_t request,
                     std::shared_ptr<const void> keep) {
  queue_.push_back({frame, data, request, std::move(keep)});
}

bool TcpSender::write(const std::function<void(std::uint64_t)>& sent) {
  while (hello_sent_ < sizeof hello_) {
    const ssize_t wrote = send(socket_.get(), reinterpret_cast<const char*>(&hello_) + hello_sent_,
                               sizeof hello_ - hello_sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (wrote < 0) return errno == EAGAIN;  // also while it connects
    connected_ = true;
    hello_sent_ += static_cast<std::size_t>(wrote);
  }
  while (!queue_.empty()) {
    std::array<iovec, 2 * most_waiting> parts;
    std::size_t count = 0;
    std::size_t skip = front_sent_;
    const auto add = [&](const void* data, std::size_t bytes) {
      const std::size_t skipped = std::min(skip, bytes);
      skip -= skipped;
      if (bytes > skipped)
        parts.at(count++) = {static_cast<char*>(const_cast<void*>(data)) + skipped,
                             bytes - skipped};
    };
    for (std::size_t i = 0; i < std::min(queue_.size(), most_waiting); ++i) {
      add(&queue_[i].frame, sizeof(Frame));
      add(queue_[i].data.data(), queue_[i].data.size());
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t wrote = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (wrote < 0) return errno == EAGAIN;
    advance(static_cast<std::size_t>(wrote), sent);
  }
  return true;
}

void TcpSender::advance(std::size_t bytes, const std::function<void(std::uint64_t)>& sent) {
  front_sent_ += bytes;
  while (!queue_.empty() && front_sent_ >= sizeof(Frame) + queue_.front().data.size()) {
    front_sent_ -= sizeof(Frame) + queue_.front().data.size();
    const std::uint64_t request = queue_.front().request;
    queue_.pop_front();
    if (--until_look_ <= 0) look_at_the_kernel();
    sent(request);
  }
}

void TcpSender::look_at_the_kernel() {
  until_look_ = look_every;
  tcp_info info{};
  socklen_t length = sizeof info;
  if (getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return;
  if (info.tcpi_min_rtt > 0 && info.tcpi_min_rtt < 0xffffffff)
    round_trip_ = microseconds(info.tcpi_min_rtt);
  if (info.tcpi_delivery_rate == 0) return;
  // Rates seen while there was little to send say nothing of the way; old ones fade.
  const auto rate = static_cast<double>(info.tcpi_delivery_rate);
  constexpr double fading = 0.98;
  rate_ = std::max(rate, info.tcpi_delivery_rate_app_limited != 0 ? rate_ : fading * rate_);
  const auto ahead = static_cast<int>(std::min(rate_ * taken_ahead.count(), 1e9));
  let_the_kernel_take(std::clamp(ahead, shares_ ? least_taken_shared : least_taken, most_taken));
}

void TcpSender::let_the_kernel_take(int bytes) const {
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

void TcpSender::share() {
  if (std::exchange(shares_, true)) return;
  let_the_kernel_take(least_taken_shared);
}

TcpSender::Word TcpSender::listen() {
  char word = 0;
  const ssize_t got = recv(socket_.get(), &word, 1, MSG_DONTWAIT);
  if (got == 1 && word == farewell_byte) return Word::farewell;
  if (got < 0 && errno == EAGAIN) return Word::nothing;
  return Word::gone;
}

void TcpSender::drop(const std::function<void(std::uint64_t)>& sent) {
  socket_.reset();
  while (!queue_.empty()) {
    const std::uint64_t request = queue_.front().request;
    queue_.pop_front();
    sent(request);
  }
}

}  // namespace riffle::engine
