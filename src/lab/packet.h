// A packet as a TUN device gives it: a virtio header, then IPv4. With TSO one of them is many
// packets of the wire ("segments") in one piece.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace riffle::lab {

// Time of the switch: nanoseconds of the steady clock.
using Nanoseconds = std::int64_t;
inline Nanoseconds clock_now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

// Hosts have the addresses of the benchmark range 198.18.0.0/15, from .0.1 on.
constexpr std::uint32_t first_address = 0xC6120001;  // 198.18.0.1
constexpr int most_hosts = 256;
std::string address_of(int host);

struct Packet {
  std::vector<std::byte> bytes;  // empty: traffic of others, which only takes its time
  int from = 0;
  int to = 0;
  std::uint64_t flow = 0;  // packets of one connection and direction have the same
  int payload = 0;         // bytes behind the TCP, UDP or ICMP header; what a link's rate counts
  int segments = 1;
  // Kept by the fabric.
  Nanoseconds tail = 0;  // when its last byte is at the port where its head is
  std::size_t hop = 0;

  [[nodiscard]] std::int64_t size() const;
};

// False for what no host should get: no IPv4, addresses of nobody, too short.
bool parse(std::span<const std::byte> bytes, int hosts, Packet& packet);

// What is left of a packet when some of its segments are lost: runs of neighbours, in order.
std::vector<Packet> without(const Packet& packet, const std::vector<bool>& lost);

}  // namespace riffle::lab
