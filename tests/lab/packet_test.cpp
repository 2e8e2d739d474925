// Packets as a TUN device gives them, and what is left of large ones when parts are lost.
#include "lab/packet.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>

#include <cstring>

#include "lab/fair_queue.h"

namespace riffle::lab {
namespace {

constexpr int segment = 1000;
constexpr std::size_t headers = 10 + 20 + 20;

// TSO: one header, several segments of data; byte i of the data is i/segment + 1.
std::vector<std::byte> tcp_bytes(int from, int to, int payload) {
  std::vector<std::byte> bytes(headers + static_cast<std::size_t>(payload));
  bytes[0] = std::byte{1};  // needs a checksum
  bytes[1] = std::byte{1};  // TCP over IPv4
  const std::uint16_t gso = segment;
  std::memcpy(bytes.data() + 4, &gso, sizeof gso);
  iphdr ip{};
  ip.version = 4;
  ip.ihl = 5;
  ip.protocol = IPPROTO_TCP;
  ip.id = htons(7);
  ip.tot_len = htons(static_cast<std::uint16_t>(bytes.size() - 10));
  ip.saddr = htonl(first_address + static_cast<std::uint32_t>(from));
  ip.daddr = htonl(first_address + static_cast<std::uint32_t>(to));
  tcphdr tcp{};
  tcp.source = htons(1111);
  tcp.dest = htons(2222);
  tcp.seq = htonl(5000);
  tcp.doff = 5;
  tcp.psh = tcp.ack = 1;
  std::memcpy(bytes.data() + 10, &ip, sizeof ip);
  std::memcpy(bytes.data() + 30, &tcp, sizeof tcp);
  for (int i = 0; i < payload; ++i)
    bytes[headers + static_cast<std::size_t>(i)] = static_cast<std::byte>(i / segment + 1);
  return bytes;
}

Packet parsed(const std::vector<std::byte>& bytes) {
  Packet packet;
  EXPECT_TRUE(parse(bytes, 4, packet));
  packet.bytes = bytes;
  return packet;
}

TEST(Packet, KnowsItsPayloadSegmentsAndFlow) {
  const Packet packet = parsed(tcp_bytes(0, 3, 3500));
  EXPECT_EQ(packet.to, 3);
  EXPECT_EQ(packet.payload, 3500);
  EXPECT_EQ(packet.segments, 4);
  EXPECT_EQ(packet.flow, parsed(tcp_bytes(0, 3, 10)).flow);
  EXPECT_NE(packet.flow, parsed(tcp_bytes(0, 2, 3500)).flow);
  EXPECT_EQ(parsed(tcp_bytes(0, 1, 0)).payload, 0);
}

TEST(Packet, WhatNobodyShouldGetIsRefused) {
  Packet packet;
  EXPECT_FALSE(parse(tcp_bytes(0, 4, 10), 4, packet));  // there are four hosts
  EXPECT_FALSE(parse(std::vector<std::byte>(29), 4, packet));
  auto six = tcp_bytes(0, 1, 10);
  six[10] = std::byte{0x60};
  EXPECT_FALSE(parse(six, 4, packet));
  auto long_header = tcp_bytes(0, 1, 0);
  long_header[10] = std::byte{0x4f};
  EXPECT_FALSE(parse(long_header, 4, packet));
}

TEST(Packet, LosesSegmentsNotAllOfItself) {
  const Packet whole = parsed(tcp_bytes(0, 1, 4500));
  const auto left = without(whole, {false, true, false, false, false});
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[0].segments, 1);
  EXPECT_EQ(left[0].payload, 1000);
  EXPECT_EQ(left[1].segments, 3);
  EXPECT_EQ(left[1].payload, 2500);
  for (const Packet& part : left) {
    iphdr ip{};
    tcphdr tcp{};
    std::memcpy(&ip, part.bytes.data() + 10, sizeof ip);
    std::memcpy(&tcp, part.bytes.data() + 30, sizeof tcp);
    EXPECT_EQ(ntohs(ip.tot_len) + 10U, part.bytes.size());
    EXPECT_EQ(part.bytes.size(), headers + static_cast<std::size_t>(part.payload));
    const int number = (static_cast<int>(ntohl(tcp.seq)) - 5000) / segment;
    EXPECT_EQ(part.bytes[headers], static_cast<std::byte>(number + 1));
    EXPECT_EQ(tcp.psh, number == 2 ? 1 : 0);  // the last one pushes
    std::uint32_t sum = 0;
    for (std::size_t i = 10; i < 30; i += 2) {
      std::uint16_t word = 0;
      std::memcpy(&word, part.bytes.data() + i, sizeof word);
      sum += word;
    }
    EXPECT_EQ((sum & 0xffff) + (sum >> 16), 0xffffU) << "the header's checksum";
    EXPECT_EQ(parsed(part.bytes).segments, part.segments);
  }
  EXPECT_TRUE(without(whole, {true, true, true, true, true}).empty());
}

TEST(Packet, AddressesAreOfTheBenchmarkRange) {
  EXPECT_EQ(address_of(0), "198.18.0.1");
  EXPECT_EQ(address_of(255), "198.18.1.0");
}

TEST(FairQueue, SharesBytesNotPackets) {
  FairQueue queue(1500);
  for (int i = 0; i < 300; ++i) {
    queue.push(1, 1, 1500);
    queue.push(2, 2, 500);
    queue.push(2, 2, 500);
    queue.push(2, 2, 500);
  }
  double bytes[3] = {};
  for (int i = 0; i < 400; ++i) {
    const int flow = queue.pop();
    bytes[flow] += flow == 1 ? 1500 : 500;
  }
  EXPECT_NEAR(bytes[1] / bytes[2], 1, 0.05);
  for (; !queue.empty();) queue.pop();
  EXPECT_EQ(queue.bytes(), 0);
}

TEST(FairQueue, WhoComesNewGoesFirstOnce) {
  FairQueue queue(1500);
  for (int i = 0; i < 10; ++i) queue.push(1, 1, 1500);
  EXPECT_EQ(queue.pop(), 1);
  queue.push(2, 2, 100);
  EXPECT_EQ(queue.pop(), 2);
  queue.push(2, 2, 1500);  // had its turn first; now as all others
  queue.push(2, 2, 1500);
  int first_ten = 0;
  for (int i = 0; i < 4; ++i) first_ten += queue.pop() == 1 ? 1 : 0;
  EXPECT_EQ(first_ten, 2);
}

}  // namespace
}  // namespace riffle::lab
