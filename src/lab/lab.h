// A lab: an emulated cluster on one machine. Real processes on hosts that are network namespaces,
// real TCP, and a switch of our own between them with the cluster's latencies and bandwidths.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lab/hosts.h"
#include "lab/switch.h"
#include "riffle/change.h"
#include "riffle/cluster.h"

namespace riffle::lab {

struct LabOptions {
  Cluster cluster;
  double dilate = 1;  // time is stretched so many times
  double shrink = 1;  // messages and bandwidths are 1/shrink
  std::vector<Change> events = {};
  std::uint64_t seed = 1;
  // Measure what moving a packet takes, and take it off every latency.
  bool calibrate = true;
};

class Lab {
 public:
  // Makes hosts and switch. UsageError for a cluster that has no links and for events of links
  // that are not there. Call become_able() before. To be called while there is one thread.
  explicit Lab(const LabOptions& options);

  [[nodiscard]] const Hosts& hosts() const { return hosts_; }
  [[nodiscard]] const Switch& network() const { return *switch_; }
  [[nodiscard]] const Wiring& wiring() const { return wiring_; }
  // As it is emulated: slowed down.
  [[nodiscard]] const Cluster& cluster() const { return cluster_; }

  // What moving a packet takes, measured at the start and taken off every latency.
  [[nodiscard]] Nanoseconds bias() const { return bias_; }

  // From now on the time of events counts.
  void start_clock();
  [[nodiscard]] Nanoseconds clock_start() const { return start_; }
  // A change now, of one who watches the lab; `change.at` is not looked at.
  void change(const Change& change) const;
  // One way alone: nothing reaches the host, or nothing leaves it.
  void cut_to(int host) const;
  void cut_from(int host) const;

 private:
  // Of a spec's change: as it is emulated.
  [[nodiscard]] Change slowed(Change change) const;
  [[nodiscard]] Wiring wired() const;
  void calibrate();

  LabOptions options_;
  Cluster cluster_;
  Wiring wiring_;
  Hosts hosts_;
  std::unique_ptr<Switch> switch_;
  Nanoseconds start_ = 0;
  Nanoseconds bias_ = 0;
};

}  // namespace riffle::lab
