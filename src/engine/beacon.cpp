#include "engine/beacon.h"

#include <netinet/in.h>
// clang-format off
#include <linux/errqueue.h>  // needs the types of the one above
// clang-format on
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "engine/ipv4.h"
#include "riffle/error.h"

namespace riffle::engine {

namespace {

bool same(const sockaddr_in& a, const sockaddr_in& b) {
  return a.sin_addr.s_addr == b.sin_addr.s_addr && a.sin_port == b.sin_port;
}

}  // namespace

Beacon::Beacon(Rank self, const std::string& address, std::uint64_t session)
    : self_(self),
      session_(session),
      socket_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  const sockaddr_in local = ipv4_address(address, 0);
  if (!socket_.valid() ||
      bind(socket_.get(), reinterpret_cast<const sockaddr*>(&local), sizeof local) != 0)
    usage_error("cannot open a heartbeat port on {}: {}", address, std::strerror(errno));
  const int on = 1;  // a host's word that nobody listens comes back
  setsockopt(socket_.get(), IPPROTO_IP, IP_RECVERR, &on, sizeof on);
  const int ahead = 6;  // "interactive": where the host's queue has bands, ahead of bulk data
  setsockopt(socket_.get(), SOL_SOCKET, SO_PRIORITY, &ahead, sizeof ahead);
}

std::string Beacon::address() const {
  return local_address(socket_.get());
}

void Beacon::open(const std::vector<std::string>& addresses, std::vector<SegmentHeader*> headers) {
  headers_ = std::move(headers);
  peers_.resize(addresses.size());
  for (std::size_t r = 0; r < addresses.size(); ++r) {
    if (addresses[r].empty() || static_cast<Rank>(r) == self_) continue;
    peers_[r] = {
        .there = true, .gone = false, .address = ipv4_address(addresses[r], "heartbeat address")};
  }
}

int Beacon::peers() const {
  return static_cast<int>(std::ranges::count(peers_, true, &Peer::there));
}

void Beacon::send(Rank to, Kind kind) {
  const std::size_t r = static_cast<std::size_t>(to);
  const Packet packet{.session = session_,
                      .from = static_cast<std::uint32_t>(self_),
                      .kind = kind,
                      .failed = headers_[r]->fenced.load() != 0};
  // A packet that does not go is a beat that is not heard: silence speaks for itself.
  sendto(socket_.get(), &packet, sizeof packet, MSG_NOSIGNAL,
         reinterpret_cast<const sockaddr*>(&peers_[r].address), sizeof peers_[r].address);
}

void Beacon::beat() {
  for (std::size_t r = 0; r < peers_.size(); ++r)
    if (peers_[r].there && !peers_[r].gone) send(static_cast<Rank>(r), Kind::beat);
}

void Beacon::listen(const std::function<void(Rank)>& died, const std::function<void(Rank)>& deaf) {
  Packet packet;
  sockaddr_in from{};
  socklen_t length = sizeof from;
  while (true) {
    const ssize_t bytes = recvfrom(socket_.get(), &packet, sizeof packet, MSG_TRUNC,
                                   reinterpret_cast<sockaddr*>(&from), &length);
    if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (bytes < 0) continue;  // an error that waits in its own queue
    const bool ours = bytes == sizeof packet && packet.session == session_ &&
                      packet.from < peers_.size() && peers_[packet.from].there &&
                      same(peers_[packet.from].address, from);
    if (ours) take(packet, deaf);
  }
  // Last: somebody who said goodbye while we were stopped has not died.
  take_errors(died);
}

void Beacon::take(const Packet& packet, const std::function<void(Rank)>& deaf) {
  const Rank from = static_cast<Rank>(packet.from);
  SegmentHeader& header = *headers_[packet.from];
  header.beats.fetch_add(1, std::memory_order_release);
  if (packet.kind == Kind::goodbye) {
    header.left.store(1, std::memory_order_release);
    send(from, Kind::farewell);
  }
  if (packet.kind == Kind::farewell) peers_[packet.from].gone = true;
  if (packet.failed != 0) deaf(from);
}

// "Port unreachable", said by the host itself, means that the process is gone; any other complaint
// is about the way there, which may heal.
void Beacon::take_errors(const std::function<void(Rank)>& died) {
  while (true) {
    Packet packet;
    sockaddr_in to{};
    std::array<char, 512> control{};
    iovec data{.iov_base = &packet, .iov_len = sizeof packet};
    msghdr message{};
    message.msg_name = &to;
    message.msg_namelen = sizeof to;
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (recvmsg(socket_.get(), &message, MSG_ERRQUEUE) < 0) return;
    for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
         each = CMSG_NXTHDR(&message, each)) {
      if (each->cmsg_level != IPPROTO_IP || each->cmsg_type != IP_RECVERR) continue;
      sock_extended_err error{};
      std::memcpy(&error, CMSG_DATA(each), sizeof error);
      if (error.ee_origin != SO_EE_ORIGIN_ICMP || error.ee_type != ICMP_DEST_UNREACH ||
          error.ee_code != ICMP_PORT_UNREACH)
        continue;
      for (std::size_t r = 0; r < peers_.size(); ++r) {
        if (!peers_[r].there || peers_[r].gone || !same(peers_[r].address, to)) continue;
        peers_[r].gone = true;
        died(static_cast<Rank>(r));
      }
    }
  }
}

void Beacon::leave(Deadline deadline) {
  const auto knows = [&](std::size_t r) {
    return !peers_[r].there || peers_[r].gone || headers_[r]->left.load() != 0 ||
           headers_[r]->fenced.load() != 0;
  };
  while (true) {
    bool all = true;
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      if (knows(r)) continue;
      send(static_cast<Rank>(r), Kind::goodbye);
      all = false;
    }
    if (all || Clock::now() >= deadline) return;
    pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    poll(&ready, 1, 20);
    listen([](Rank) {}, [](Rank) {});
  }
}

}  // namespace riffle::engine
