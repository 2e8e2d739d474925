// IPv4 addresses and sockets of data and heartbeats.
#pragma once

#include <netinet/in.h>

#include <string>

#include "base/descriptor.h"

namespace riffle::engine {

// UsageError where `ip` is no IPv4 address; `text` is "198.18.0.1:4000".
sockaddr_in ipv4_address(const std::string& ip, int port);
sockaddr_in ipv4_address(const std::string& text, const char* what);
// "ip:port" of a socket.
std::string local_address(int socket);
// Of TCP, that does not block and sends small messages at once. UsageError when there is none.
Descriptor new_tcp_socket();
// Accepts connections on a port of its own of this address.
Descriptor listen_on(const std::string& ip);

}  // namespace riffle::engine
