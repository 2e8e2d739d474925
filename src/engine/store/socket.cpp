#include "engine/store/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/text.h"

namespace riffle::store {

namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList resolve(const StoreAddress& address, int flags, std::string& problem) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  const int error = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) problem = error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error);
  return {error == 0 ? found : nullptr, &freeaddrinfo};
}

StoreAddress numeric(const sockaddr* address, socklen_t size) {
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "0";
  getnameinfo(address, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  return {host, std::atoi(port)};  // NOLINT(cert-err34-c): getnameinfo prints a number
}

// The first address of an interface of that name, IPv4 before IPv6; empty when there is none.
std::string interface_address(const std::string& name) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, &freeifaddrs);
  for (const int family : {AF_INET, AF_INET6})
    for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
      if (name != one->ifa_name || one->ifa_addr == nullptr || one->ifa_addr->sa_family != family)
        continue;
      return numeric(one->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6))
          .host;
    }
  return {};
}

// A peer whose host has vanished without a word is noticed within a minute.
void set_options(int socket) {
  const auto set = [&](int level, int name, int value) {
    setsockopt(socket, level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

// Connecting again and again to a free port of this host ends, sooner or later, in a connection
// from that port to itself: TCP calls it a simultaneous open.
bool connected_to_itself(int socket) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return false;
  return local_address(socket) == numeric(reinterpret_cast<const sockaddr*>(&peer), size);
}

Descriptor connect_one(const addrinfo& to, Deadline deadline, std::string& problem) {
  Descriptor socket(
      ::socket(to.ai_family, to.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, to.ai_protocol));
  if (!socket.valid()) {
    problem = std::strerror(errno);
    return {};
  }
  set_options(socket.get());
  int error = 0;
  if (connect(socket.get(), to.ai_addr, to.ai_addrlen) != 0) error = errno;
  if (error == EINPROGRESS) {
    socklen_t size = sizeof error;
    if (!wait_for(socket.get(), POLLOUT, deadline))
      error = ETIMEDOUT;
    else
      getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error == 0 && connected_to_itself(socket.get())) error = ECONNREFUSED;
  if (error == 0) return socket;
  problem = std::strerror(error);
  return {};
}

}  // namespace

Descriptor listen_on(const StoreAddress& bind) {
  StoreAddress where = bind;
  if (const std::string address = interface_address(bind.host); !address.empty())
    where.host = address;
  std::string problem;
  const AddressList found = resolve(where, 0, problem);
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    Descriptor socket(::socket(one->ai_family, one->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                               one->ai_protocol));
    const int yes = 1;
    if (socket.valid()) {
      setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
      if (one->ai_family == AF_INET6)
        setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    }
    if (socket.valid() && ::bind(socket.get(), one->ai_addr, one->ai_addrlen) == 0 &&
        listen(socket.get(), SOMAXCONN) == 0)
      return socket;
    problem = std::strerror(errno);
  }
  usage_error("the store cannot listen on {}: {}", print(bind), problem);
}

Descriptor accept_from(int listener, std::string& peer) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  Descriptor socket(accept4(listener, raw, &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.valid()) return socket;
  set_options(socket.get());
  peer = print(numeric(raw, size));
  return socket;
}

StoreAddress local_address(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (getsockname(socket, raw, &size) != 0) return {};
  return numeric(raw, size);
}

Descriptor connect_to(const StoreAddress& address, Deadline deadline, std::string& problem) {
  const AddressList found = resolve(address, 0, problem);
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next)
    if (Descriptor socket = connect_one(*one, deadline, problem); socket.valid()) return socket;
  return {};
}

bool wait_for(int socket, short events, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    const auto time = std::clamp<std::int64_t>(left.count(), 0, INT_MAX);
    pollfd one{.fd = socket, .events = events, .revents = 0};
    const int ready = poll(&one, 1, static_cast<int>(time));
    if (ready > 0) return true;
    if (ready == 0 && Clock::now() >= deadline) return false;
  }
}

bool is_loopback(const std::string& host) {
  std::string problem;
  const AddressList found = resolve({host, 0}, 0, problem);
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    const std::string text = numeric(one->ai_addr, one->ai_addrlen).host;
    if (text.starts_with("127.") || text == "::1") return true;
  }
  return false;
}

void raise_open_files(int wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  // The next free descriptor tells how many are taken, or nearly.
  const Descriptor probe(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
  const auto needed = static_cast<rlim_t>(wanted + std::max(probe.get(), 0) + 1);
  if (limit.rlim_cur >= needed) return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace riffle::store
