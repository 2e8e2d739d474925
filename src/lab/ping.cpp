#include "lab/ping.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "base/descriptor.h"
#include "lab/packet.h"

namespace riffle::lab {

namespace {

using Clock = std::chrono::steady_clock;

// Waits for the answer with that number.
bool answered(int socket, std::uint16_t sequence, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd watched{.fd = socket, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || poll(&watched, 1, static_cast<int>(left.count())) <= 0) return false;
    std::vector<std::byte> bytes(2048);
    const ssize_t got = recv(socket, bytes.data(), bytes.size(), 0);
    icmphdr header{};
    if (got < static_cast<ssize_t>(sizeof header)) continue;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.type == ICMP_ECHOREPLY && ntohs(header.un.echo.sequence) == sequence) return true;
  }
}

}  // namespace

std::vector<Seconds> ping(int host, int count, int payload, Seconds timeout) {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMP));
  if (!socket.valid())
    throw std::runtime_error(fmt::format("lab: no socket for pings: {}", std::strerror(errno)));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(first_address + static_cast<std::uint32_t>(host));
  std::vector<Seconds> times;
  std::vector<std::byte> message(sizeof(icmphdr) + static_cast<std::size_t>(payload));
  for (int i = 0; i < count; ++i) {
    icmphdr header{};
    header.type = ICMP_ECHO;
    header.un.echo.sequence = htons(static_cast<std::uint16_t>(i));
    std::memcpy(message.data(), &header, sizeof header);
    const auto begin = Clock::now();
    if (sendto(socket.get(), message.data(), message.size(), 0,
               reinterpret_cast<const sockaddr*>(&to), sizeof to) < 0)
      continue;
    const auto limit = begin + std::chrono::duration_cast<Clock::duration>(timeout);
    if (answered(socket.get(), static_cast<std::uint16_t>(i), limit))
      times.push_back(Clock::now() - begin);
  }
  return times;
}

Seconds median(std::vector<Seconds> times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

}  // namespace riffle::lab
