// Ports are open on one interface only, and strangers on them harm nothing.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "far_workers.h"

namespace riffle::test {
namespace {

struct Port {
  std::uint32_t address;  // network order
  int number;
};

// What is bound in this network namespace: TCP sockets that listen, or all UDP sockets.
std::vector<Port> bound_ports(bool tcp) {
  std::ifstream table(tcp ? "/proc/self/net/tcp" : "/proc/self/net/udp");
  std::string line;
  std::getline(table, line);
  std::vector<Port> ports;
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string number;
    std::string local;
    std::string remote;
    std::string state;
    words >> number >> local >> remote >> state;
    if (tcp && state != "0A") continue;
    const auto colon = local.find(':');
    ports.push_back({static_cast<std::uint32_t>(std::stoul(local.substr(0, colon), nullptr, 16)),
                     std::stoi(local.substr(colon + 1), nullptr, 16)});
  }
  return ports;
}

sockaddr_in to_address(const Port& port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port.number));
  address.sin_addr.s_addr = port.address;
  return address;
}

// Random bytes, zeros, or nothing at all.
std::vector<std::byte> garbage(Random& random, int kind) {
  std::vector<std::byte> bytes(kind == 2 ? 0 : 1 + random.below(40'000));
  if (kind != 1)
    for (auto& byte : bytes) byte = static_cast<std::byte>(random.next());
  return bytes;
}

void molest(const Port& port, bool tcp, Random& random) {
  std::vector<int> open;
  for (int i = 0; i < 40; ++i) {
    const int fd = socket(AF_INET, (tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);
    const sockaddr_in address = to_address(port);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      const auto bytes = garbage(random, i % 4);
      [[maybe_unused]] const auto sent =
          send(fd, bytes.data(), std::min<std::size_t>(bytes.size(), tcp ? 40'000 : 1400),
               MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    if (i % 3 == 0)
      open.push_back(fd);  // stays, and says no more
    else
      close(fd);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (const int fd : open) close(fd);
}

// The stranger is on the host itself: nobody is nearer.
int attack(const FarWorld& world, int host) {
  world.lab().hosts().enter(host);
  Random random(3);
  int attacked = 0;
  for (const bool tcp : {true, false})
    for (const Port& port : bound_ports(tcp)) {
      char text[INET_ADDRSTRLEN] = {};
      inet_ntop(AF_INET, &port.address, text, sizeof text);
      EXPECT_EQ(std::string(text), lab::address_of(host)) << "port " << port.number;
      molest(port, tcp, random);
      ++attacked;
    }
  EXPECT_GE(attacked, 2);  // of UCX, and for heartbeats
  return testing::Test::HasFailure() ? 1 : 0;
}

TEST(Ports, AreOnTheInterfaceOnlyAndGarbageHarmsNothing) {
  NEEDS_HOSTS();
  constexpr int size = 3;
  const FarWorld world(size, 1);
  Shared<std::atomic<int>> running;
  Shared<std::atomic<bool>> over;
  Workers workers(size, [&](Rank rank) {
    const FarEngine joined = world.join(rank);
    Collectives collectives(*joined.engine);
    const Group all = Membership::all(size).ranks;
    float more = 1;
    for (std::uint64_t i = 0; more > 0; ++i) {
      check(*joined.engine, collectives, false,
            {.group = all, .count = 1 + (i * 977) % 50'000, .seed = i});
      if (i == 5) running->fetch_add(1);
      if (i % 20 != 0) continue;
      more = over->load() ? 0 : 1;
      collectives.broadcast(all, 0, tensor_view(std::span(&more, 1)));
    }
  });
  const Deadline started = after(Seconds(20));
  while (running->load() < size && Clock::now() < started)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_EQ(running->load(), size);
  for (const int host : {1, 2}) {
    Workers stranger(1, [&](Rank) { EXPECT_EQ(attack(world, host), 0); });
    EXPECT_EQ(stranger.wait(0, Seconds(30)), 0);
  }
  over->store(true);
  EXPECT_EQ(workers.wait_all(Seconds(20)), std::vector<int>(size, 0));
}

}  // namespace
}  // namespace riffle::test
