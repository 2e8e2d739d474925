// The switch: a process that moves packets between the devices of the hosts as the fabric says, at
// the time it says.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "base/descriptor.h"
#include "lab/fabric.h"
#include "lab/wiring.h"
#include "riffle/change.h"

namespace riffle::lab {

// Written by the switch, read by us, in memory that both have.
struct SwitchReport {
  std::atomic<std::int64_t> delivered{0};  // pieces
  std::atomic<std::int64_t> late{0};       // of them, by more than a tenth of the shortest latency
  std::atomic<std::int64_t> unread{0};     // came for nobody
};

// A change of ports; in messages to the switch, so a plain struct.
struct PortChange {
  enum What { bandwidth, latency, jitter, loss, load, cut, repair, bias, end } what = end;
  int port = 0;
  double value = 0;    // bytes per second, nanoseconds or a share
  Nanoseconds at = 0;  // of the steady clock; what lies behind is done at once
};

// What a change of a cluster is for its ports.
std::vector<PortChange> port_changes(const Change& change, const Cluster& cluster,
                                     const Wiring& wiring);

class Switch {
 public:
  // Starts the process; it holds the devices and ends with us, however we end.
  Switch(const Wiring& wiring, std::span<const Descriptor> devices, std::uint64_t seed);
  ~Switch();
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

  void tell(const PortChange& change) const;
  [[nodiscard]] const SwitchReport& report() const { return *report_; }
  // Of each port, now.
  [[nodiscard]] std::vector<Counters> counters() const;
  // False when it has ended by itself, which is a bug.
  [[nodiscard]] bool running() const;

 private:
  std::size_t ports_;
  SwitchReport* report_ = nullptr;
  Counters* counters_ = nullptr;  // behind the report
  std::size_t shared_size_ = 0;
  Descriptor commands_;
  pid_t pid_ = 0;
  pid_t owner_ = 0;  // a copy of us in a forked process ends nothing
};

}  // namespace riffle::lab
