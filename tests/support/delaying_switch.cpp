#include "support/delaying_switch.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <stdexcept>

namespace riffle::test {

namespace {

using Clock = std::chrono::steady_clock;

// Large packets keep the switch cheap, and TCP's first window wider than a message of the tests.
constexpr std::size_t mtu = 65000;
// Woken a little early, the switch looks at the clock for the rest: sleeping is not that exact.
constexpr auto early = std::chrono::microseconds(60);

struct Packet {
  Clock::time_point due;
  std::size_t to = 0;
  std::vector<char> bytes;
};

// Takes what has come; all packets take the same time, so they leave in this order.
void take(int device, std::size_t devices, std::chrono::nanoseconds delay,
          std::deque<Packet>& packets) {
  std::vector<char> buffer(mtu + 64);
  while (true) {
    const ssize_t bytes = read(device, buffer.data(), buffer.size());
    if (bytes < 20) return;
    const auto host = static_cast<unsigned char>(buffer[19]);  // of the IPv4 target address
    if (buffer[0] >> 4 != 4 || host == 0 || host > devices) continue;
    packets.push_back({Clock::now() + delay, host - 1U, {buffer.begin(), buffer.begin() + bytes}});
  }
}

[[noreturn]] void run(const std::vector<int>& devices, std::chrono::nanoseconds delay) {
  std::vector<pollfd> watched;
  for (const int device : devices)
    watched.push_back({.fd = device, .events = POLLIN, .revents = 0});
  std::deque<Packet> packets;
  while (true) {
    timespec limit{.tv_sec = 1, .tv_nsec = 0};
    if (!packets.empty()) {
      const auto left = packets.front().due - early - Clock::now();
      limit = {.tv_sec = 0, .tv_nsec = std::max<long>(0, std::chrono::nanoseconds(left).count())};
    }
    ppoll(watched.data(), watched.size(), &limit, nullptr);
    for (const pollfd& each : watched)
      if (each.revents != 0) take(each.fd, devices.size(), delay, packets);
    while (!packets.empty() && packets.front().due <= Clock::now()) {
      const Packet& packet = packets.front();
      [[maybe_unused]] const auto written =
          write(devices[packet.to], packet.bytes.data(), packet.bytes.size());
      packets.pop_front();
    }
  }
}

}  // namespace

int open_tun(const Namespace& where, const char* name) {
  where.run("exec true");  // says early where namespaces do not work
  const int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  const int there = open(where.path().c_str(), O_RDONLY | O_CLOEXEC);
  const bool moved = home >= 0 && there >= 0 && setns(there, CLONE_NEWNET) == 0;
  const int device = moved ? open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC) : -1;
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  const bool made = device >= 0 && ioctl(device, TUNSETIFF, &request) == 0;
  if (moved && setns(home, CLONE_NEWNET) != 0) throw std::runtime_error("no way back");
  close(home);
  close(there);
  if (!made) throw std::runtime_error("cannot make a TUN device");
  where.run("ip link set " + std::string(name) + " mtu " + std::to_string(mtu));
  return device;
}

pid_t start_delaying_switch(const std::vector<int>& devices, Seconds one_way) {
  const auto delay = std::chrono::duration_cast<std::chrono::nanoseconds>(one_way);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_TIMERSLACK, 1000UL);
  sched_param high{};
  high.sched_priority = 10;
  sched_setscheduler(0, SCHED_FIFO, &high);  // where it may: workers must not delay the network
  run(devices, delay);
}

}  // namespace riffle::test
