#include "engine/ipv4.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "riffle/error.h"
#include "riffle/store.h"

namespace riffle::engine {

sockaddr_in ipv4_address(const std::string& ip, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, ip.c_str(), &address.sin_addr) != 1)
    usage_error("\"{}\" is not an IPv4 address", ip);
  return address;
}

sockaddr_in ipv4_address(const std::string& text, const char* what) {
  const StoreAddress parsed = parse_store_address(text, what);
  return ipv4_address(parsed.host, parsed.port);
}

std::string local_address(int socket) {
  sockaddr_in local{};
  socklen_t length = sizeof local;
  RIFFLE_CHECK_EQ(getsockname(socket, reinterpret_cast<sockaddr*>(&local), &length), 0);
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &local.sin_addr, text.data(), text.size());
  return print(StoreAddress{text.data(), ntohs(local.sin_port)});
}

Descriptor new_tcp_socket() {
  Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.valid()) usage_error("cannot make a socket: {}", std::strerror(errno));
  const int on = 1;
  setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return made;
}

Descriptor listen_on(const std::string& ip) {
  Descriptor made = new_tcp_socket();
  const sockaddr_in local = ipv4_address(ip, 0);
  if (bind(made.get(), reinterpret_cast<const sockaddr*>(&local), sizeof local) != 0 ||
      listen(made.get(), SOMAXCONN) != 0)
    usage_error("cannot open a data port on {}: {}", ip, std::strerror(errno));
  return made;
}

}  // namespace riffle::engine
