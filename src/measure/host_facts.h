// What a host says of its network: interfaces and settings of the kernel, from /sys and /proc.
#pragma once

#include <string>
#include <vector>

#include "riffle/units.h"

namespace riffle::measure {

struct Device {
  std::string name;
  int mtu = 0;
  Bandwidth speed;  // as its driver says; zero where it does not, or is virtual
  bool operator==(const Device&) const = default;
};

struct HostFacts {
  std::string name;            // of the host
  std::string address;         // IPv4, of the interface that is used; empty where none is
  Device used;                 // the interface that carries data
  std::vector<Device> others;  // that are up, without loopback
  Bytes receive_buffer;        // the most that TCP may take for a connection: tcp_rmem, tcp_wmem
  Bytes send_buffer;
  std::string congestion_control;
  bool operator==(const HostFacts&) const = default;
};

// `interface` is the name of the one that is used, `address` its address.
HostFacts read_host_facts(const std::string& interface, const std::string& address);

std::string to_json(const HostFacts& facts);
HostFacts host_facts_from_json(std::string_view text);

}  // namespace riffle::measure
