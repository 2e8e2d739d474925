#include "measure/large_packets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/descriptor.h"
#include "measure/echoes.h"

namespace riffle::measure {
namespace {

constexpr Tag kTag{.channel = 0x6d747531};  // "mtu1"
constexpr int kTries = 3;
constexpr int kHeaders = 28;  // of IPv4 and UDP
constexpr std::size_t kSmallPacket = 16;
// Packets may be overtaken by the message that says they were sent.
constexpr std::chrono::milliseconds kGrace{20};

// A socket of this host whose packets are never fragmented.
class Socket {
 public:
  explicit Socket(const std::string& address)
      : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const int whole = IP_PMTUDISC_PROBE;
    here_.sin_family = AF_INET;
    socklen_t length = sizeof here_;
    valid_ = socket_.valid() && inet_pton(AF_INET, address.c_str(), &here_.sin_addr) == 1 &&
             setsockopt(socket_.get(), IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof whole) == 0 &&
             bind(socket_.get(), reinterpret_cast<const sockaddr*>(&here_), sizeof here_) == 0 &&
             getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&here_), &length) == 0;
    if (!valid_) here_ = {};
  }
  [[nodiscard]] const sockaddr_in& here() const { return here_; }

  void send(const sockaddr_in& to, std::size_t bytes) const {
    const std::vector<std::byte> data(bytes);
    if (valid_)
      (void)sendto(socket_.get(), data.data(), data.size(), MSG_DONTWAIT,
                   reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  // What has come: 1 small ones, 2 full ones, 3 both.
  [[nodiscard]] double come() const {
    std::vector<std::byte> data(1 << 16);
    int seen = 0;
    for (;;) {
      const ssize_t got = valid_ ? recv(socket_.get(), data.data(), data.size(), MSG_DONTWAIT) : -1;
      if (got < 0) return seen;
      seen |= static_cast<std::size_t>(got) > kSmallPacket ? 2 : 1;
    }
  }

 private:
  Descriptor socket_;
  sockaddr_in here_{};
  bool valid_ = false;
};

void send_to(const Place& place, Rank peer, const Socket& socket, int mtu) {
  sockaddr_in there{};
  place.receive(peer, kTag, std::as_writable_bytes(std::span(&there, 1)));
  for (int i = 0; i < kTries && there.sin_port != 0; ++i) {
    socket.send(there, kSmallPacket);
    if (mtu > kHeaders) socket.send(there, static_cast<std::size_t>(mtu - kHeaders));
  }
  place.send(peer, kTag, {});
}

double receive_from(const Place& place, Rank peer, const Socket& socket) {
  place.send(peer, kTag, std::as_bytes(std::span(&socket.here(), 1)));
  place.receive(peer, kTag, {});
  std::this_thread::sleep_for(kGrace);
  return socket.come();
}

}  // namespace

PairTable<bool> try_large_packets(const Place& place, const Group& among,
                                  const std::string& address, int mtu) {
  const int n = among.size();
  const int self = among.index_of(place.engine().rank());
  std::vector<double> told(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
  const Socket socket(address);
  for (int round = 0; self >= 0 && round < rounds_of(n); ++round) {
    const int other = opponent(self, round, n);
    if (other < 0) continue;
    const Rank peer = among.ranks()[other];
    if (self < other) send_to(place, peer, socket, mtu);
    told[static_cast<std::size_t>(other * n + self)] = receive_from(place, peer, socket);
    if (self > other) send_to(place, peer, socket, mtu);
  }
  place.control().all_reduce(told, Reduction::sum);
  PairTable<bool> passed(n);
  for (int a = 0; a < n; ++a)
    for (int b = 0; b < n; ++b) {
      const int seen = static_cast<int>(told[static_cast<std::size_t>(a * n + b)]);
      if (seen != 0) passed.at(a, b) = seen >= 2;
    }
  return passed;
}

}  // namespace riffle::measure
