#include "support/hosts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "support/delaying_switch.h"

namespace riffle::test {

namespace {

// The end that a host has of its wire.
constexpr const char* device = "eth0";

std::string mac(int host) {
  return fmt::format("02:00:00:00:00:{:02x}", host + 1);
}

void must(bool done, const char* what) {
  if (!done) throw std::runtime_error(fmt::format("{} failed", what));
}

}  // namespace

// ---------------------------------------------------------------------------- one namespace

Namespace::Namespace() {
  int ready[2];
  must(pipe(ready) == 0, "pipe");
  const pid_t maker = fork();
  if (maker == 0) {
    const bool made = unshare(CLONE_NEWNET) == 0;
    if (write(ready[1], made ? "y" : "n", 1) != 1) _exit(1);
    while (true) pause();
  }
  char answer = 0;
  must(read(ready[0], &answer, 1) == 1, "starting a process");
  close(ready[0]);
  close(ready[1]);
  const std::string path = fmt::format("/proc/{}/ns/net", maker);
  descriptor_ = Descriptor(open(path.c_str(), O_RDONLY));  // workers inherit it
  kill(maker, SIGKILL);
  waitpid(maker, nullptr, 0);
  must(answer == 'y' && descriptor_.valid(), "making a network namespace");
  path_ = fmt::format("/proc/{}/fd/{}", getpid(), descriptor_.get());
}

void Namespace::enter() const {
  must(setns(descriptor_.get(), CLONE_NEWNET) == 0, "entering a network namespace");
  must(unshare(CLONE_NEWNS) == 0, "making a mount namespace");
  must(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "keeping mounts private");
  must(mount("sysfs", "/sys", "sysfs", 0, nullptr) == 0, "mounting /sys");
}

void Namespace::run(const std::string& command) const {
  const pid_t child = fork();
  if (child == 0) {
    if (setns(descriptor_.get(), CLONE_NEWNET) != 0) _exit(126);
    execl("/bin/sh", "sh", "-ec", command.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error(fmt::format("failed: {}", command));
}

// ---------------------------------------------------------------------------- several, joined

std::string Hosts::missing() {
  if (geteuid() != 0) return "network namespaces need root";
  if (std::system("command -v ip bridge > /dev/null") != 0) return "there is no iproute2";
  const pid_t child = fork();
  if (child == 0) _exit(unshare(CLONE_NEWNET | CLONE_NEWNS) == 0 ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? "" : "this system allows no network namespaces";
}

Hosts::Hosts(int count, Seconds one_way) {
  for (int host = 0; host < count; ++host) hosts_.push_back(std::make_unique<Namespace>());
  if (one_way > Seconds(0))
    join_by_switch(one_way);
  else
    join_by_bridge();
  for (int host = 0; host < count; ++host)
    hosts_[static_cast<std::size_t>(host)]->run(
        fmt::format("ip link set lo up; ip addr add {}/24 dev {}; ip link set {} up\n"
                    "echo reno > /proc/sys/net/ipv4/tcp_congestion_control\n"
                    // A first window that is wider than a message of the tests.
                    "echo 4096 4194304 33554432 > /proc/sys/net/ipv4/tcp_rmem",
                    address(host), device, device));
}

Hosts::~Hosts() {
  if (switch_ == 0) return;
  kill(switch_, SIGKILL);
  waitpid(switch_, nullptr, 0);
}

std::string Hosts::address(int host) {
  return fmt::format("198.18.0.{}", host + 1);
}

// A port besides those of the hosts swallows what must not arrive.
void Hosts::join_by_bridge() {
  bridge_ = std::make_unique<Namespace>();
  bridge_->run(
      "ip link add bridge type bridge; ip link set bridge up\n"
      "ip link add hole type veth peer name bottom; ip link set hole master bridge\n"
      "ip link set hole up; ip link set bottom up");
  for (std::size_t host = 0; host < hosts_.size(); ++host)
    bridge_->run(
        fmt::format("ip link add port{} type veth peer name {} address {} netns {}\n"
                    "ip link set port{} master bridge; ip link set port{} up",
                    host, device, mac(static_cast<int>(host)), hosts_[host]->path(), host, host));
}

void Hosts::join_by_switch(Seconds one_way) {
  std::vector<int> devices;
  for (const auto& host : hosts_) devices.push_back(open_tun(*host, device));
  switch_ = start_delaying_switch(devices, one_way);
  for (const int each : devices) close(each);
}

void Hosts::cut(int host, Cut cut) const {
  if (cut == Cut::both) return bridge_->run(fmt::format("ip link set port{} down", host));
  if (cut == Cut::to)
    return bridge_->run(
        fmt::format("bridge fdb replace {} dev hole master static sticky", mac(host)));
  std::string commands;
  for (int other = 0; other < static_cast<int>(hosts_.size()); ++other)
    if (other != host)
      commands += fmt::format("ip neigh replace {} lladdr 02:00:00:00:ff:ff dev {} nud permanent\n",
                              address(other), device);
  hosts_[static_cast<std::size_t>(host)]->run(commands);
}

void Hosts::mend(int host) const {
  bridge_->run(fmt::format("ip link set port{} up", host));
}

}  // namespace riffle::test
