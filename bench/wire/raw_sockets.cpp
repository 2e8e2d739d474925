#include "raw_sockets.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "riffle/error.h"

namespace riffle::bench {

namespace {

constexpr int longest_silence = 60'000;  // ms

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string("raw sockets: ") + what + ": " + std::strerror(errno));
}

// The address from which this host reaches the job's first one.
sockaddr_in own_address() {
  const char* master = std::getenv("MASTER_ADDR");
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(9);
  if (master == nullptr || inet_pton(AF_INET, master, &to.sin_addr) != 1)
    throw std::runtime_error("raw sockets: MASTER_ADDR is no address");
  const Descriptor probe(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in own{};
  socklen_t length = sizeof own;
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 ||
      getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0)
    fail("own address");
  own.sin_port = 0;
  return own;
}

Descriptor tcp() {
  Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made.valid()) fail("socket");
  const int on = 1;
  setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return made;
}

}  // namespace

RawSockets::RawSockets(Engine& engine, Collectives& collectives)
    : engine_(engine),
      sockets_(static_cast<std::size_t>(engine.size())),
      out_(sockets_.size()),
      in_(sockets_.size()) {
  const Group all = Membership::all(engine.size()).ranks;
  sockaddr_in own = own_address();
  const Descriptor listener = tcp();
  socklen_t length = sizeof own;
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0 ||
      listen(listener.get(), engine.size()) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0)
    fail("listen");
  std::vector<double> addresses(2 * sockets_.size());
  const auto self = static_cast<std::size_t>(engine.rank());
  addresses[2 * self] = ntohl(own.sin_addr.s_addr);
  addresses[2 * self + 1] = ntohs(own.sin_port);
  collectives.all_reduce(all, tensor_view(std::span(addresses)), {.reduction = Reduction::sum});
  for (std::size_t rank = 0; rank < self; ++rank) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(static_cast<std::uint32_t>(addresses[2 * rank]));
    to.sin_port = htons(static_cast<std::uint16_t>(addresses[2 * rank + 1]));
    sockets_[rank] = tcp();
    if (connect(sockets_[rank].get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
      fail("connect");
    const auto name = static_cast<std::uint32_t>(self);
    if (send(sockets_[rank].get(), &name, sizeof name, MSG_NOSIGNAL) != sizeof name) fail("name");
  }
  for (std::size_t i = self + 1; i < sockets_.size(); ++i) {
    Descriptor from(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::uint32_t name = 0;
    if (recv(from.get(), &name, sizeof name, MSG_WAITALL) != sizeof name || name >= sockets_.size())
      fail("accept");
    const int on = 1;
    setsockopt(from.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockets_[name] = std::move(from);
  }
  collectives.barrier(all);
}

void RawSockets::Direction::moved(std::size_t bytes) {
  done += bytes;
  while (open() && done == parts[part].size()) ++part, done = 0;
}

void RawSockets::fill(const collective::Call& call, const collective::Plan& plan, int round,
                      int me) {
  const std::size_t element = static_cast<std::size_t>(size_of(call.data.dtype).count);
  for (std::size_t r = 0; r < out_.size(); ++r) out_[r].clear(), in_[r].clear();
  std::vector<pattern::Message> messages;
  std::vector<collective::Range> ranges;
  const auto add = [&](bool sends) {
    messages.clear();
    if (sends)
      plan.pattern().sends(me, round, messages);
    else
      plan.pattern().receives(me, round, messages);
    for (const pattern::Message& message : messages) {
      const int member = sends ? message.to : message.from;
      const auto rank =
          static_cast<std::size_t>(call.group.ranks()[static_cast<std::size_t>(member)]);
      plan.ranges_of(message, 0, ranges);
      for (const collective::Range& range : ranges) {
        if (range.count == 0) continue;
        std::byte* from = (sends ? call.data.data : landing_.data()) + range.begin * element;
        (sends ? out_ : in_)[rank].parts.emplace_back(from, range.count * element);
      }
    }
  };
  add(true);
  add(false);
}

// Whether anything is left to move.
bool RawSockets::move() {
  std::vector<pollfd> watched;
  std::vector<std::size_t> ranks;
  for (std::size_t r = 0; r < sockets_.size(); ++r) {
    const int events = (out_[r].open() ? POLLOUT : 0) | (in_[r].open() ? POLLIN : 0);
    if (events == 0) continue;
    watched.push_back(
        {.fd = sockets_[r].get(), .events = static_cast<short>(events), .revents = 0});
    ranks.push_back(r);
  }
  if (watched.empty()) return false;
  if (poll(watched.data(), watched.size(), longest_silence) <= 0) fail("poll");
  for (std::size_t i = 0; i < watched.size(); ++i) {
    Direction& out = out_[ranks[i]];
    Direction& in = in_[ranks[i]];
    if (out.open() && (watched[i].revents & POLLOUT) != 0) {
      const auto rest = out.parts[out.part].subspan(out.done);
      const ssize_t sent =
          send(watched[i].fd, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno != EAGAIN) fail("send");
      if (sent > 0) out.moved(static_cast<std::size_t>(sent));
    }
    if (in.open() && (watched[i].revents & POLLIN) != 0) {
      const auto rest = in.parts[in.part].subspan(in.done);
      const ssize_t got = recv(watched[i].fd, rest.data(), rest.size(), MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN)) fail("receive");
      if (got > 0) in.moved(static_cast<std::size_t>(got));
    }
  }
  return true;
}

void RawSockets::run(const collective::Call& call, const collective::Plan& plan) {
  landing_.resize(call.data.count * static_cast<std::size_t>(size_of(call.data.dtype).count));
  for (int round = 0; round < plan.pattern().rounds(); ++round) {
    fill(call, plan, round, call.group.index_of(engine_.rank()));
    while (move()) continue;
  }
}

}  // namespace riffle::bench
