#include "lab/hosts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "lab/device.h"

namespace riffle::lab {

namespace {

void must(bool done, const char* what) {
  if (!done) throw std::runtime_error(fmt::format("lab: {}: {}", what, std::strerror(errno)));
}

Descriptor this_network() {
  return Descriptor(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
}

bool has_privileges() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word)
    if (word == "CapEff:") {
      std::uint64_t set = 0;
      status >> std::hex >> set;
      constexpr int net_admin = 12;
      constexpr int sys_admin = 21;
      return (set >> net_admin & 1) != 0 && (set >> sys_admin & 1) != 0;
    }
  return false;
}

void write_map(const char* file, const std::string& text) {
  std::ofstream map(file);
  map << text << std::flush;
  must(map.good(), file);
}

// Runs in a child: the errno of what does not work, 0 where everything does.
int try_it() {
  try {
    become_able();
  } catch (const std::exception&) {
    return errno != 0 ? errno : EPERM;
  }
  return unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUTS) == 0 ? 0 : errno;
}

}  // namespace

std::string missing() {
  const Descriptor tun(open("/dev/net/tun", O_RDWR | O_CLOEXEC));
  if (!tun.valid() && errno == EACCES)
    return "/dev/net/tun is not for this user: run as root, or open it to all, as most systems "
           "do, with `chmod 666 /dev/net/tun`";
  if (!tun.valid())
    return fmt::format(
        "/dev/net/tun cannot be opened ({}): load the module with `modprobe tun`, or give this "
        "container the device",
        std::strerror(errno));
  const pid_t child = fork();
  if (child == 0) _exit(try_it());
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  const std::string why = std::strerror(WIFEXITED(status) ? WEXITSTATUS(status) : EINTR);
  if (has_privileges())
    return fmt::format(
        "this system allows no network namespaces ({}); a container needs the "
        "capabilities SYS_ADMIN and NET_ADMIN",
        why);
  return fmt::format(
      "not root, and no user namespace ({}): run as root, or allow them with `sysctl -w "
      "kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000` and, on Ubuntu, "
      "kernel.apparmor_restrict_unprivileged_userns=0",
      why);
}

void become_able() {
  if (has_privileges()) return;
  const uid_t user = geteuid();
  const gid_t group = getegid();
  must(unshare(CLONE_NEWUSER) == 0, "making a user namespace");
  write_map("/proc/self/setgroups", "deny");
  write_map("/proc/self/uid_map", fmt::format("{} {} 1", user, user));
  write_map("/proc/self/gid_map", fmt::format("{} {} 1", group, group));
  // One to come back to from those of the hosts: the true one is not ours.
  must(unshare(CLONE_NEWNET) == 0, "making a network namespace");
}

Hosts::Hosts(const Wiring& wiring) : home_(this_network()) {
  must(home_.valid(), "finding this network namespace");
  for (int host = 0; host < wiring.hosts; ++host) {
    must(unshare(CLONE_NEWNET) == 0, "making a network namespace");
    namespaces_.push_back(this_network());
    try {
      devices_.push_back(make_device({.host = host,
                                      .frame = wiring.frame[static_cast<std::size_t>(host)],
                                      .window = wiring.window}));
    } catch (...) {
      leave_network();
      throw;
    }
  }
  leave_network();
}

void Hosts::enter_network(int host) const {
  must(setns(namespaces_[static_cast<std::size_t>(host)].get(), CLONE_NEWNET) == 0,
       "entering a network namespace");
}

void Hosts::leave_network() const {
  must(setns(home_.get(), CLONE_NEWNET) == 0, "leaving a network namespace");
}

void Hosts::enter(int host) const {
  enter_network(host);
  must(unshare(CLONE_NEWNS | CLONE_NEWUTS) == 0, "making a mount namespace");
  const std::string name = fmt::format("lab{}", host);
  must(sethostname(name.data(), name.size()) == 0, "naming a host");
  must(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "keeping mounts private");
  // UCX looks for devices there. In a user namespace inside a container the kernel may refuse it;
  // then UCX says that it finds none.
  const bool mounted = mount("sysfs", "/sys", "sysfs", 0, nullptr) == 0;
  must(mounted || geteuid() != 0, "mounting /sys");
}

}  // namespace riffle::lab
