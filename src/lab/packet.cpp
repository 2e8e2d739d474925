#include "lab/packet.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cstring>

namespace riffle::lab {

namespace {

// As <linux/virtio_net.h> has it, which is no C++.
struct VirtioHeader {
  std::uint8_t flags = 0;
  std::uint8_t gso_type = 0;
  std::uint16_t header_length = 0;
  std::uint16_t gso_size = 0;
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;
};
constexpr std::uint8_t gso_none = 0;
constexpr std::uint8_t gso_tcp4 = 1;
constexpr std::uint8_t gso_ecn = 0x80;
constexpr std::size_t virtio = sizeof(VirtioHeader);
static_assert(virtio == 10);

// Headers are copied out and in: they need not be aligned in a packet.
template <typename Header>
Header read(std::span<const std::byte> bytes, std::size_t at) {
  Header header{};
  std::memcpy(&header, bytes.data() + at, sizeof header);
  return header;
}

template <typename Header>
void write(std::vector<std::byte>& bytes, std::size_t at, const Header& header) {
  std::memcpy(bytes.data() + at, &header, sizeof header);
}

std::uint16_t fold(std::uint32_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

std::uint32_t sum_words(std::span<const std::byte> bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) sum += read<std::uint16_t>(bytes, i);
  return sum;
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15U;
  return hash ^ (hash >> 29);
}

// One run of segments, cut out of a TSO packet of TCP.
Packet piece(const Packet& whole, int first, int count) {
  const auto header = read<VirtioHeader>(whole.bytes, 0);
  auto ip = read<iphdr>(whole.bytes, virtio);
  const std::size_t tcp_at = virtio + ip.ihl * std::size_t{4};
  auto tcp = read<tcphdr>(whole.bytes, tcp_at);
  const std::size_t data_at = tcp_at + tcp.doff * std::size_t{4};
  const std::size_t begin = static_cast<std::size_t>(first) * header.gso_size;
  const std::size_t length = std::min<std::size_t>(
      static_cast<std::size_t>(count) * header.gso_size, whole.bytes.size() - data_at - begin);
  const bool last = first + count == whole.segments;

  Packet result = whole;
  result.segments = count;
  result.payload = static_cast<int>(length);
  const auto data = whole.bytes.begin() + static_cast<std::ptrdiff_t>(data_at + begin);
  result.bytes.resize(data_at);
  result.bytes.insert(result.bytes.end(), data, data + static_cast<std::ptrdiff_t>(length));

  auto virtio_header = header;
  if (count == 1) virtio_header.gso_type = gso_none;
  if (count == 1) virtio_header.gso_size = 0;
  ip.tot_len = htons(static_cast<std::uint16_t>(data_at - virtio + length));
  ip.id = htons(static_cast<std::uint16_t>(ntohs(ip.id) + first));
  ip.check = 0;
  tcp.seq = htonl(ntohl(tcp.seq) + static_cast<std::uint32_t>(begin));
  if (!last) tcp.fin = tcp.psh = 0;
  // Left to whoever computes checksums: the sum of the pseudo header, as the kernel leaves it.
  tcp.check =
      fold((ip.saddr & 0xffff) + (ip.saddr >> 16) + (ip.daddr & 0xffff) + (ip.daddr >> 16) +
           htons(IPPROTO_TCP) + htons(static_cast<std::uint16_t>(data_at - tcp_at + length)));
  write(result.bytes, 0, virtio_header);
  write(result.bytes, virtio, ip);
  ip.check = static_cast<std::uint16_t>(
      ~fold(sum_words(std::span(result.bytes).subspan(virtio, ip.ihl * std::size_t{4}))));
  write(result.bytes, virtio, ip);
  write(result.bytes, tcp_at, tcp);
  return result;
}

}  // namespace

std::string address_of(int host) {
  const std::uint32_t address = first_address + static_cast<std::uint32_t>(host);
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 255, address >> 8 & 255,
                     address & 255);
}

std::int64_t Packet::size() const {
  return std::max<std::int64_t>(payload, static_cast<std::int64_t>(bytes.size()));
}

bool parse(std::span<const std::byte> bytes, int hosts, Packet& packet) {
  if (bytes.size() < virtio + sizeof(iphdr)) return false;
  const auto header = read<VirtioHeader>(bytes, 0);
  const auto ip = read<iphdr>(bytes, virtio);
  const std::uint32_t to = ntohl(ip.daddr) - first_address;
  const std::size_t inner = virtio + ip.ihl * std::size_t{4};
  if (ip.version != 4 || ip.ihl < 5 || to >= static_cast<std::uint32_t>(hosts) ||
      inner > bytes.size())
    return false;
  packet.to = static_cast<int>(to);
  packet.flow = mix(mix(ip.saddr, ip.daddr), ip.protocol);
  std::size_t headers = 0;
  const bool ports = ip.protocol == IPPROTO_TCP || ip.protocol == IPPROTO_UDP;
  if (ports && inner + 4 <= bytes.size()) {
    packet.flow = mix(packet.flow, read<std::uint32_t>(bytes, inner));
    headers = 8;
  }
  if (ip.protocol == IPPROTO_ICMP) headers = 8;
  if (ip.protocol == IPPROTO_TCP && inner + sizeof(tcphdr) <= bytes.size())
    headers = read<tcphdr>(bytes, inner).doff * std::size_t{4};
  const std::size_t data = bytes.size() - inner;
  packet.payload = static_cast<int>(data - std::min(data, headers));
  packet.segments = 1;
  if ((header.gso_type & ~gso_ecn) == gso_tcp4 && header.gso_size > 0)
    packet.segments = std::max(1, (packet.payload + header.gso_size - 1) / header.gso_size);
  return true;
}

std::vector<Packet> without(const Packet& packet, const std::vector<bool>& lost) {
  std::vector<Packet> left;
  for (int first = 0; first < packet.segments;) {
    if (lost[static_cast<std::size_t>(first)]) {
      ++first;
      continue;
    }
    int end = first;
    while (end < packet.segments && !lost[static_cast<std::size_t>(end)]) ++end;
    left.push_back(piece(packet, first, end - first));
    first = end;
  }
  return left;
}

}  // namespace riffle::lab
