// Emulated hosts: network namespaces without a name. They are held by descriptors and by the
// processes in them, so all of it goes with the processes, however they end.
#pragma once

#include <string>
#include <vector>

#include "base/descriptor.h"
#include "lab/wiring.h"

namespace riffle::lab {

// Why there can be no hosts here, and what would help; empty where there can.
std::string missing();

// Without privileges: moves this process, which must have one thread, to a user namespace where it
// has them. Nothing to do for who has them.
void become_able();

class Hosts {
 public:
  explicit Hosts(const Wiring& wiring);

  [[nodiscard]] int size() const { return static_cast<int>(namespaces_.size()); }
  // Brings the calling process, which must have one thread, to the host for good: its network, a
  // name of its own (lab3), a /sys that shows its devices.
  void enter(int host) const;
  // Only the network, and only of the calling thread; for sockets that shall be there.
  void enter_network(int host) const;
  void leave_network() const;

  // The ends that the switch holds. Closed here when the switch has them.
  [[nodiscard]] const std::vector<Descriptor>& devices() const { return devices_; }
  void close_devices() { devices_.clear(); }

 private:
  Descriptor home_;
  std::vector<Descriptor> namespaces_;
  std::vector<Descriptor> devices_;
};

}  // namespace riffle::lab
