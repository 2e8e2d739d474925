#include "lab/device.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include "lab/packet.h"

namespace riffle::lab {

namespace {

constexpr int queue_length = 10'000;  // packets; where the kernel waits for the switch to read

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(fmt::format("lab: {}: {}", what, std::strerror(errno)));
}

ifreq request_for(const char* name) {
  ifreq request{};
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  return request;
}

void set_address(sockaddr& place, std::uint32_t address) {
  sockaddr_in value{};
  value.sin_family = AF_INET;
  value.sin_addr.s_addr = htonl(address);
  std::memcpy(&place, &value, sizeof value);
}

void bring_up(int socket, const char* name) {
  ifreq request = request_for(name);
  if (ioctl(socket, SIOCGIFFLAGS, &request) != 0) fail("reading an interface's flags");
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  if (ioctl(socket, SIOCSIFFLAGS, &request) != 0) fail("bringing an interface up");
}

struct Attribute {
  rtattr head;
  std::uint32_t value;
};

Attribute attribute(unsigned short type, int value) {
  return {.head = {.rta_len = sizeof(Attribute), .rta_type = type},
          .value = static_cast<std::uint32_t>(value)};
}

// What leaves in one piece, and how many pieces the kernel keeps; in a user namespace only netlink
// may set it.
void limit_frames(int frame) {
  struct {
    nlmsghdr header;
    ifinfomsg info;
    Attribute frame;
    Attribute queue;
  } message{};
  message.header.nlmsg_len = sizeof message;
  message.header.nlmsg_type = RTM_NEWLINK;
  message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  message.info.ifi_index = static_cast<int>(if_nametoindex(device_name));
  message.frame = attribute(IFLA_GSO_MAX_SIZE, frame);
  message.queue = attribute(IFLA_TXQLEN, queue_length);
  const Descriptor netlink(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (send(netlink.get(), &message, sizeof message, 0) != sizeof message) fail("using netlink");
  struct {
    nlmsghdr header;
    nlmsgerr error;
  } answer{};
  if (recv(netlink.get(), &answer, sizeof answer, 0) < static_cast<ssize_t>(sizeof answer))
    fail("hearing from netlink");
  errno = -answer.error.error;
  if (errno != 0) fail("limiting the size of frames");
}

void write_setting(const std::string& name, const std::string& value, bool needed = true) {
  const Descriptor file(open(("/proc/sys/net/" + name).c_str(), O_WRONLY | O_CLOEXEC));
  const auto size = static_cast<ssize_t>(value.size());
  if ((!file.valid() || write(file.get(), value.data(), value.size()) != size) && needed)
    fail(("writing /proc/sys/net/" + name).c_str());
}

void set_up_tcp(std::int64_t window) {
  write_setting("ipv4/tcp_congestion_control", "reno");
  // Buffers count the kernel's own overhead too.
  const std::int64_t buffer = window * 5 / 2;
  const std::string sizes = fmt::format("4096 {} {}", buffer, buffer);
  write_setting("ipv4/tcp_rmem", sizes);
  write_setting("ipv4/tcp_wmem", sizes);
  // As on hosts that are set up for such work: a connection that paused keeps its window.
  write_setting("ipv4/tcp_slow_start_after_idle", "0");
  write_setting("ipv6/conf/default/disable_ipv6", "1", false);
  // ping without privileges, for whoever runs in the lab.
  const gid_t group = getegid();
  write_setting("ipv4/ping_group_range", fmt::format("{} {}", group, group), false);
}

Descriptor open_tun() {
  Descriptor tun(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!tun.valid()) fail("opening /dev/net/tun");
  ifreq request = request_for(device_name);
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  if (ioctl(tun.get(), TUNSETIFF, &request) != 0) fail("making a TUN device");
  if (ioctl(tun.get(), TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4) != 0) fail("offering TSO");
  return tun;
}

}  // namespace

Descriptor make_device(const DeviceOptions& options) {
  set_up_tcp(options.window);
  Descriptor tun = open_tun();
  const Descriptor any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  bring_up(any.get(), "lo");
  ifreq request = request_for(device_name);
  set_address(request.ifr_addr, first_address + static_cast<std::uint32_t>(options.host));
  if (ioctl(any.get(), SIOCSIFADDR, &request) != 0) fail("giving a host its address");
  set_address(request.ifr_netmask, 0xfffe0000);  // 198.18.0.0/15
  if (ioctl(any.get(), SIOCSIFNETMASK, &request) != 0) fail("setting a netmask");
  request.ifr_mtu = mtu;
  if (ioctl(any.get(), SIOCSIFMTU, &request) != 0) fail("setting an MTU");
  limit_frames(options.frame);
  bring_up(any.get(), device_name);
  return tun;
}

}  // namespace riffle::lab
